"""How deep markup nests, before a parser is given it whose time grows with the square of that."""

from __future__ import annotations

import re

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)[^<>]*?(/?)(?=[<>]|\Z)")
_LEFT_OPEN = "area base br col dd dt embed hr img input li link meta option p param rp rt source td th tr track wbr"
_SELDOM_CLOSED = frozenset(_LEFT_OPEN.split())
_BRACKET = re.compile(r"[\[\]{}]")


class NestedTooDeeply(ValueError):
    """A text that no person wrote, and that a parser would take hours for."""


def tags_nest_deeper(markup: str, most: int, *, xml: bool = False) -> bool:
    """Whether more than ``most`` elements are open at once, near enough: what is seldom closed ends with its parent.

    ``xml``: ``<a/>`` is closed at once, which it is not in HTML.
    """
    if markup.count("<") <= most:
        return False
    unclosed: dict[str, int] = {}
    depth = 0
    for closing, name, closed in _TAG.findall(markup):
        name = name.lower()
        if name in _SELDOM_CLOSED or (xml and closed):
            continue
        count = unclosed.get(name, 0)
        if not closing:
            unclosed[name] = count + 1
            depth += 1
            if depth > most:
                return True
        elif count:
            unclosed[name] = count - 1
            depth -= 1
    return False


def brackets_nest_deeper(text: str, most: int) -> bool:
    """Whether more than ``most`` square or curly brackets are open at once, of each counted by itself."""
    square = curly = 0
    for bracket in _BRACKET.findall(text):
        if bracket == "[":
            square += 1
        elif bracket == "{":
            curly += 1
        elif bracket == "]":
            square = max(0, square - 1)
        else:
            curly = max(0, curly - 1)
        if square > most or curly > most:
            return True
    return False
