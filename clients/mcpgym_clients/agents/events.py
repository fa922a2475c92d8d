"""Reading what products print: lines of JSON that may be cut off, mixed with other text, or of another form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mcpgym_rl.policy import Usage

NOTHING = "its endpoint answered nothing"
"""What a product got from its endpoint that has told of no answer yet."""


def events(printed: bytes) -> Iterator[dict[str, Any]]:
    """The lines that are objects of JSON, in order; whatever else there is, is passed over."""
    for line in printed.splitlines():
        if line.lstrip().startswith(b"{"):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value


def part(value: Any, *names: str) -> dict[str, Any]:
    """An object within objects; empty where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def text_of(value: Any) -> str:
    """A text; empty where it is none."""
    return value if isinstance(value, str) else ""


def rows(value: Any) -> list[dict[str, Any]]:
    """The objects in a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def count(value: Mapping[str, Any], *names: str) -> int:
    """The sum of the numbers under ``names``; what is no number of tokens counts nothing."""
    numbers = [value.get(name) for name in names]
    return sum(one for one in numbers if isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 10**12)


def usage(read: int, written: int, cached: int | None) -> Usage:
    """Tokens, as the rest of the program counts them."""
    return Usage(read, written, cached)
