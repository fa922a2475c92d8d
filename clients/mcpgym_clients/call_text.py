"""A tool call for a person to read: code and other long texts as the lines that they are, not as one escaped string."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

BELOW = "↓"
"""Stands in the call's line for an argument whose lines follow."""


@dataclass(frozen=True, slots=True)
class Block:
    """An argument of several lines: its name, and they."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class CallText:
    """A call: the tool's ``name``, its ``line`` and the ``blocks`` that belong below it."""

    name: str
    line: str
    blocks: tuple[Block, ...] = ()


def call_text(call: Any) -> CallText:
    """A call as ``name(argument=value)``, texts of several lines apart; as it was written where it is no such call."""
    function = call.get("function") if isinstance(call, dict) else None
    function = function if isinstance(function, dict) else {}
    name, arguments = str(function.get("name", "?")), function.get("arguments", "")
    try:
        given = json.loads(arguments)
        if not isinstance(given, dict):
            raise ValueError("no arguments by name")
        blocks = tuple(Block(key, value) for key, value in given.items() if _has_lines(value))
        below = {block.name for block in blocks}
        shown = (
            f"{key} {BELOW}" if key in below else f"{key}={json.dumps(value, ensure_ascii=False)}"
            for key, value in given.items()
        )
        return CallText(name, f"{name}({', '.join(shown)})", blocks)
    except (ValueError, TypeError, RecursionError):
        return CallText(name, f"{name} {arguments}")


def _has_lines(value: object) -> bool:
    return isinstance(value, str) and "\n" in value.strip("\n")
