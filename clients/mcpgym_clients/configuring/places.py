"""Lines of a TOML file. Python's parser says what stands in it and not where, so it is asked statement by statement."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line, from 1, on which the value at ``keys`` begins, or the nearest table around it; None where none is.

    ``text`` is TOML without faults.
    """
    best: tuple[int, int] | None = None
    for line, path in _statements(text):
        common = 0
        while common < min(len(path), len(keys)) and path[common] == keys[common]:
            common += 1
        if common and (best is None or common > best[0]):
            best = (common, line)
    return None if best is None else best[1]


def written(keys: Sequence[str]) -> str:
    """The path as TOML writes it."""
    return ".".join(key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in keys)


def place_of_error(message: str, text: str) -> tuple[int, str]:
    """The line of what the parser complains about, and what it says without that."""
    found = _PLACE.search(message)
    said = _PLACE.sub("", message)
    said = said[:1].lower() + said[1:]
    if found is not None and found[1]:
        return int(found[1]), f"{said} (column {found[2]})"
    return text.count("\n") + (not text.endswith("\n")), f"{said} (at the end of the file)"


def _statements(text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Each key that is set and each header: its line and its whole path."""
    lines = text.split("\n")
    table: tuple[str, ...] = ()
    first = 0
    while first < len(lines):
        parsed, after = _one(lines, first)
        opens = lines[first].lstrip().startswith("[")
        for path in _paths(parsed):
            yield first + 1, path if opens else (*table, *path)
        if opens:
            table = next(iter(_paths(parsed)), ())
        first = after


def _one(lines: Sequence[str], first: int) -> tuple[Mapping[str, Any], int]:
    """The statement that begins on line ``first``, and the line after it."""
    for after in range(first + 1, len(lines) + 1):
        try:
            return tomllib.loads("\n".join(lines[first:after]) + "\n"), after
        except tomllib.TOMLDecodeError:
            continue
    return {}, first + 1


def _paths(table: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The paths of everything in ``table`` that is no table, and of those that are empty."""
    for key, value in table.items():
        inner = value[-1] if isinstance(value, list) and value and isinstance(value[-1], dict) else value
        if isinstance(inner, dict) and inner:
            yield from ((key, *path) for path in _paths(inner))
        else:
            yield (key,)
