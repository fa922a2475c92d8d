"""What a file may be, so that no command waits for it: it may be a stranger's, and every command reads it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcpgym_clients.configuring.places import MARKS

DEEPEST = 8
"""How deep tables and lists may be in each other."""
LONGEST = 4096
"""How many characters a text may have."""
WIDEST = 2**63
"""Integers are smaller: TOML promises 64 bits."""
_DEEP = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){%d}" % DEEPEST)  # noqa: UP031


def deep_key(text: str) -> int | None:
    """The line of a key of too many parts, for which Python's parser takes very long; None where there is none."""
    plain = MARKS.sub(
        lambda mark: {'"': "s", "'": "s", "#": ""}.get(mark[0][0], mark[0]) + mark[0].count("\n", 1) * "\n", text
    )
    found = _DEEP.search(plain)
    return None if found is None else plain.count("\n", 0, found.start()) + 1


def beyond(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths of values that are out of bounds, each with what is wrong."""
    waiting: list[tuple[tuple[str, ...], int, Any]] = [((), 0, data)]
    while waiting:
        path, depth, value = waiting.pop()
        if isinstance(value, int) and not -WIDEST <= value < WIDEST:
            yield path, "an integer has at most 64 bits"
        elif isinstance(value, str) and len(value) > LONGEST:
            yield path, f"a text has at most {LONGEST} characters"
        elif isinstance(value, Mapping | list) and depth == DEEPEST:
            yield path, f"tables and lists are at most {DEEPEST} deep"
        elif isinstance(value, Mapping):
            waiting += [((*path, key), depth + 1, inner) for key, inner in value.items()]
        elif isinstance(value, list):
            waiting += [(path, depth + 1, inner) for inner in value]
