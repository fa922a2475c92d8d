"""Arithmetic questions, counted through so that no two tasks share one, and how a number is read from an answer."""

from __future__ import annotations

import re

from mcpgym_environments.enumeration import digits

_FIRST, _SECOND, _THIRD = range(12, 100), range(3, 30), range(100, 1000)
_SIGNS = ("+", "-")

QUESTIONS = len(_FIRST) * len(_SECOND) * len(_THIRD) * len(_SIGNS)
"""How many different questions there are."""

_NUMBER = re.compile(r"([+\-−]?)([0-9]{1,18}|[0-9]{1,3}(?:,[0-9]{3}){1,5})(?:\.0{1,6})?")


def question(number: int) -> tuple[str, int]:
    """The question with this number, 0 to ``QUESTIONS - 1``, and its answer."""
    sign, first, second, third = digits(number, [len(_SIGNS), len(_FIRST), len(_SECOND), len(_THIRD)])
    a, b, c = _FIRST[first], _SECOND[second], _THIRD[third]
    return f"What is {a} * {b} {_SIGNS[sign]} {c}?", a * b + (c if _SIGNS[sign] == "+" else -c)


def read_number(text: str) -> int | None:
    """The whole number that ``text`` is, and nothing else: ``-1204``, ``1,204`` or ``1204.0``; None for other text."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    size = int(found[2].replace(",", ""))
    return -size if found[1] in ("-", "−") else size
