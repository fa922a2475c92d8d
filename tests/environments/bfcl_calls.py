"""What BFCL's own checker says of calls that were made here, and ways to spoil a solution."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcpgym_environments.imported.bfcl.data import Row
from mcpgym_environments.imported.bfcl.judging import Call, checker, read_calls
from mcpgym_environments.imported.bfcl.package import folder

_runs = itertools.count()


def entries(category: str = "base") -> dict[str, dict[str, Any]]:
    """The rows of BFCL's file, as its checker wants them, by id."""
    text = (folder() / "data" / f"BFCL_v4_multi_turn_{category}.json").read_text(encoding="utf-8")
    return {row["id"]: row for row in map(json.loads, text.splitlines())}


def says(entry: Mapping[str, Any], row: Row, turns: Sequence[Sequence[str]]) -> bool:
    """Whether BFCL's checker calls these turns, each a list of calls as BFCL writes them, right."""
    given = [[[call] for call in turn] for turn in turns]
    gold = [list(turn) for turn in row.gold]
    name = f"run_{next(_runs)}"  # its instances stay in its module's global names
    return bool(checker().multi_turn_checker(given, gold, entry, "multi_turn", name)["valid"])


def written(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as BFCL writes it."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def solution(row: Row) -> list[list[Call]]:
    return [list(read_calls(turn, row.apis)) for turn in row.gold]


def turns_of(messages: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """The calls of a rollout, for each time that the user spoke."""
    turns: list[list[str]] = []
    for message in messages:
        if message["role"] == "user":
            turns.append([])
        for call in message.get("tool_calls") or ():
            made = call["function"]
            turns[-1].append(written(made["name"], json.loads(made["arguments"])))
    return turns
