"""Lines of a TOML file. Python's parser says what stands in it and not where, so it is asked statement by statement.

A file may be anybody's, so the time this takes grows with its length and no faster, however it is written.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")
MARKS = re.compile(
    r"""#[^\n]*|"{3}(?:\\[\s\S]|[^\\])*?(?:"{3,5}|\\?\Z)|'{3}[\s\S]*?(?:'{3,5}|\Z)"""
    r"""|"(?:\\.|[^"\\\n])*+"?|'[^'\n]*+'?|[][{}\n]"""
)
"""Comments, strings, brackets and ends of lines: what says where a statement ends."""
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def line_of(text: str, keys: Sequence[str]) -> int | None:
    """The line, from 1, on which the value at ``keys`` begins, or the nearest table around it; None where none is.

    ``text`` is TOML without faults.
    """
    places = _places(text)
    path = tuple(keys)
    while path and path not in places:
        path = path[:-1]
    return places.get(path)


@lru_cache(maxsize=8)
def _places(text: str) -> Mapping[tuple[str, ...], int]:
    """The line on which each value and each table is first spoken of, by its path."""
    places: dict[tuple[str, ...], int] = {}
    for line, path in _statements(text):
        for length in range(1, len(path) + 1):
            places.setdefault(path[:length], line)
    return places


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
    table: tuple[str, ...] = ()
    for line, statement in _pieces(text):
        parsed = tomllib.loads(statement)
        opens = statement.lstrip().startswith("[")
        for path in _paths(parsed):
            yield line, path if opens else (*table, *path)
        if opens:
            table = next(iter(_paths(parsed)), ())


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """The statements, each with the line on which it begins."""
    begin, line, depth = 0, 1, 0
    for mark in MARKS.finditer(text + "\n"):
        sign = mark[0]
        depth += (sign in "[{") - (sign in "]}")
        if sign == "\n" and not depth:
            statement = text[begin : mark.end()]
            yield line, statement
            line += statement.count("\n")
            begin = mark.end()


def _paths(table: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The paths of everything in ``table`` that is no table, and of those that are empty."""
    for key, value in table.items():
        inner = value[-1] if isinstance(value, list) and value and isinstance(value[-1], dict) else value
        if isinstance(inner, dict) and inner:
            yield from ((key, *path) for path in _paths(inner))
        else:
            yield (key,)
