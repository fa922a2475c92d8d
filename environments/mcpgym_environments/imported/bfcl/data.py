"""BFCL's tasks, with their solutions, as they lie in its package."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mcpgym import Message
from mcpgym.errors import ConfigurationError
from mcpgym.messages import user
from mcpgym_environments.imported.bfcl.package import EXTRA, folder

NEW_FUNCTIONS = "I have updated some more functions you can choose from. What about now?"
"""What BFCL's user says in a turn that has no words of its own (its ``default_prompts``)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One task.

    ``turns`` is what the user says, turn by turn; ``gold`` the calls that solve each, as BFCL writes them
    (``cd(folder='document')``). ``withheld`` are functions that are there only from a turn on, ``excluded`` those that
    are never.
    """

    id: str
    turns: tuple[tuple[Message, ...], ...]
    gold: tuple[tuple[str, ...], ...]
    apis: tuple[str, ...]
    initial: Mapping[str, Any]
    withheld: Mapping[str, int]
    excluded: frozenset[str]
    long_context: bool


@cache
def rows(category: str) -> tuple[Row, ...]:
    """The tasks of a category (``base``), in BFCL's order.

    Raises:
        MissingPackage: BFCL is not installed.
        ConfigurationError: the installed version has other files than this one knows.
    """
    name = f"_multi_turn_{category}.json"
    data = folder() / "data"
    solutions = {row["id"]: row["ground_truth"] for row in _lines(data / "possible_answer", name)}
    made = [_row(row, solutions[row["id"]], category) for row in _lines(data, name)]
    return tuple(made)


def documents(api_file: str) -> Iterator[dict[str, Any]]:
    """What BFCL says about the functions of an API, one after the other."""
    yield from _lines(folder() / "data" / "multi_turn_func_doc", api_file)


def _lines(place: Path, ending: str) -> Sequence[dict[str, Any]]:
    found = sorted(place.glob(f"*{ending}"))
    if len(found) != 1:
        raise ConfigurationError(
            f"bfcl: {EXTRA.package} {EXTRA.version} has no one file …{ending} in {place.name}/; try "
            f"pip install --no-deps 'bfcl-eval==2026.3.23'"
        )
    return [json.loads(line) for line in found[0].read_text(encoding="utf-8").splitlines() if line.strip()]


def _row(row: Mapping[str, Any], gold: Sequence[Sequence[str]], category: str) -> Row:
    withheld = {
        document["name"] if isinstance(document, dict) else document: int(turn)
        for turn, documents in row.get("missed_function", {}).items()
        for document in documents
    }
    return Row(
        id=row["id"],
        turns=tuple(tuple(_said(turn)) for turn in row["question"]),
        gold=tuple(tuple(calls) for calls in gold),
        apis=tuple(row["involved_classes"]),
        initial=row["initial_config"],
        withheld=withheld,
        excluded=frozenset(row.get("excluded_function", ())),
        long_context=category == "long_context",
    )


def _said(turn: Sequence[Mapping[str, str]]) -> Iterator[Message]:
    for message in turn or ({"role": "user", "content": NEW_FUNCTIONS},):
        yield user(message["content"])
