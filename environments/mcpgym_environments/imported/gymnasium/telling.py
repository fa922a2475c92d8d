"""What an environment shows, as text: its observation in words and, where it has one, its picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mcpgym.errors import ConfigurationError

LARGEST = 1_024
"""Numbers of one observation that are told; beyond it, it is a picture that no text tells."""
LONGEST = 20_000
"""Characters of one text that an environment shows."""
_MARKED = re.compile(r"\x1b\[[0-9;]*4[0-7][0-9;]*m(.*?)\x1b\[0?m", re.DOTALL)
_CODE = re.compile(r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
"""What steers a terminal, and what no text has."""
_PLACES = ("R (red)", "G (green)", "Y (yellow)", "B (blue)")


def picture(text: object) -> str:
    """A picture for a terminal as plain text: what stands on a coloured ground is put into brackets."""
    if hasattr(text, "getvalue"):
        text = text.getvalue()
    if not isinstance(text, str):
        return ""
    marked = _MARKED.sub(lambda match: f"[{match[1].strip() or '*'}]", text)
    lines = [line.rstrip() for line in _CODE.sub("", marked).strip("\n").splitlines()]
    return "\n".join(lines)[:LONGEST]


def told(kind: str, observation: Any, shape: int = 0) -> str:
    """An observation in words.

    Args:
        kind: which of Gymnasium's own environments it is of, whose observations have meanings; empty for others.
        observation: what the environment gave.
        shape: columns of the grid that it is a cell of, where it is one.
    """
    meaning = _MEANINGS.get(kind)
    said = f"observation: {values(observation)}"
    return f"{said}\n{meaning(observation, shape)}" if meaning is not None else said


def values(observation: Any, depth: int = 1) -> str:
    """An observation's values: numbers to four places, dictionaries as ``name: value``, a line each.

    Args:
        observation: it, or a part of it.
        depth: how far in the lines of a dictionary stand.

    Raises:
        ConfigurationError: it has too many numbers to be told.
    """
    if isinstance(observation, Mapping):
        return "".join(f"\n{'  ' * depth}{name}: {values(item, depth + 1)}" for name, item in observation.items())
    if isinstance(observation, tuple):
        return f"({', '.join(values(item, depth + 1) for item in observation)})"
    if isinstance(observation, str):
        return _CODE.sub("", observation)[:LONGEST]
    array = np.asarray(observation)
    if array.dtype == object:
        return str(observation)[:LONGEST]
    if array.size > LARGEST:
        raise ConfigurationError(
            f"gymnasium: an observation of {array.size} numbers cannot be told as text; {LARGEST} at most. Take an "
            "environment, or a wrapper, with smaller ones"
        )
    return _numbers(array.tolist())


def _numbers(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_numbers, value))}]"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _cell(observation: Any, columns: int) -> str:
    row, column = divmod(int(observation), columns or 1)
    return f"You are in row {row}, column {column}, counted from 0 at the top left."


def _taxi(observation: Any, columns: int) -> str:
    rest, destination = divmod(int(observation), 4)
    rest, passenger = divmod(rest, 5)
    row, column = divmod(rest, 5)
    where = "in the taxi" if passenger == 4 else f"at {_PLACES[passenger]}"
    return (
        f"The taxi is in row {row}, column {column}, counted from 0 at the top left; the passenger is {where} and "
        f"wants to go to {_PLACES[destination]}."
    )


def _cards(observation: Any, columns: int) -> str:
    mine, dealer, ace = observation
    usable = "with" if int(ace) else "without"
    shown = "an ace" if int(dealer) == 1 else f"a {int(dealer)}"
    return f"Your cards add up to {int(mine)}, {usable} a usable ace; the dealer shows {shown}."


_MEANINGS: Mapping[str, Callable[[Any, int], str]] = {
    "FrozenLake": _cell,
    "CliffWalking": _cell,
    "Taxi": _taxi,
    "Blackjack": _cards,
}
