"""Whether a dictionary has been changed, without looking at what is in it.

Looking would write to the page of every key and value (their counts of references), and take longer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_OFFSET = 24
"""Where CPython 3.11 to 3.13 keep the number that every change of a dictionary changes, behind its count of items."""


def changes_of(found: dict[str, Any]) -> Callable[[], object]:
    """What gives an equal value as long as ``found``, which must live on, is not changed.

    Where the interpreter keeps no such number, the value is never equal to another.
    """
    if sys.implementation.name != "cpython" or sys.maxsize < 2**32:
        return object
    try:
        import ctypes
    except ImportError:
        return object
    tried: dict[str, Any] = {"a": 1, "b": 2}
    number = _number(ctypes, tried)
    seen = [number()]
    for change in (
        lambda: tried.update(a=3),
        lambda: tried.__setitem__("a", 4),
        lambda: tried.__setitem__("c", 5),
        lambda: tried.pop("b"),
        lambda: tried.__delitem__("a"),
        lambda: tried.update({f"{n}": n for n in range(100)}),
        tried.clear,
    ):
        change()
        if number() in seen or number() != (tried.get("c"), number())[1]:  # it changes, and not by itself
            return object
        seen.append(number())
    return _number(ctypes, found)


def _number(ctypes: Any, found: dict[str, Any]) -> Callable[[], object]:
    held = ctypes.c_uint64.from_address(id(found) + _OFFSET)
    read: Callable[[Any], object] = type(held).value.__get__
    return lambda: read(held)
