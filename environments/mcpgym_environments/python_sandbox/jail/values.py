"""What a function returned, as JSON: exact types only, within a size, so that nothing in it can act."""

from __future__ import annotations

import builtins
from json.encoder import encode_basestring_ascii
from typing import Any

globals()["__builtins__"] = dict(vars(builtins))

MOST_BYTES = 1 << 20
"""The longest JSON of a returned value."""
MOST_DEPTH = 200
"""How deep lists and dictionaries may lie in each other."""
MOST_DIGITS = 4300
"""How many digits an integer may have: what ``int`` and ``json`` read back by default."""

_quote = encode_basestring_ascii
_write_int = int.__repr__
_write_float = float.__repr__


class NotExact(ValueError):
    """A value that JSON would not give back the same; the text says what it is."""


def exact_json(value: Any) -> bytes:
    """JSON that reads back as the same value of the same types.

    Only None, bool, int, float, str, list and dict with str keys, none of their subclasses; finite numbers.

    Raises:
        NotExact: it holds something else, or is too large, too deep or circular.
    """
    parts: list[str] = []
    left = _put(value, parts, MOST_BYTES, 0)
    if left < 0:
        raise NotExact(f"more than {MOST_BYTES} bytes")
    return "".join(parts).encode("ascii")


def _put(value: Any, parts: list[str], left: int, depth: int) -> int:
    """Append the JSON of ``value``; gives how many bytes are left."""
    kind = type(value)
    if kind is str:
        if len(value) > left:
            raise NotExact(f"more than {MOST_BYTES} bytes")
        if not value.isascii() and _rejoined(value) != value:
            raise NotExact("a str with the two halves of a surrogate pair side by side")
        text = _quote(value)
    elif kind is int:
        if value.bit_length() > 14_300:  # of at least 4,301 digits; the exact count below
            raise NotExact(f"an int of more than {MOST_DIGITS} digits")
        try:
            text = _write_int(value)
        except ValueError:
            raise NotExact(f"an int of more than {MOST_DIGITS} digits") from None
        if len(text) > MOST_DIGITS + (value < 0):
            raise NotExact(f"an int of more than {MOST_DIGITS} digits")
    elif value is None:
        text = "null"
    elif value is True:
        text = "true"
    elif value is False:
        text = "false"
    elif kind is float:
        if value - value != 0.0:
            raise NotExact(_write_float(value))
        text = _write_float(value)
    elif kind is list or kind is dict:
        return _put_all(value, kind is dict, parts, left, depth)
    else:
        raise NotExact(_name(kind))
    parts.append(text)
    left -= len(text)
    if left < 0:
        raise NotExact(f"more than {MOST_BYTES} bytes")
    return left


def _rejoined(text: str) -> str:
    """What JSON gives back: two halves side by side are read as the one character that they would be the halves of."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _put_all(value: Any, is_dict: bool, parts: list[str], left: int, depth: int) -> int:
    if depth >= MOST_DEPTH:
        raise NotExact(f"more than {MOST_DEPTH} levels")
    parts.append("{" if is_dict else "[")
    left -= 2
    comma = ""
    for item in value:
        if comma:
            parts.append(comma)
            left -= 1
        comma = ","
        if is_dict:
            if type(item) is not str:
                raise NotExact(f"dict with a key of type {_name(type(item))}")
            left = _put(item, parts, left, depth)
            parts.append(":")
            left -= 1
            item = value[item]
        left = _put(item, parts, left, depth + 1)
    parts.append("}" if is_dict else "]")
    return left


def _name(kind: type) -> str:
    name = vars(type)["__name__"].__get__(kind)
    return name[:80] if type(name) is str else "?"
