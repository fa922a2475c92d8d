"""What a call may cost. BFCL's classes trust their caller; a policy may ask for a billion digits."""

from __future__ import annotations

import contextlib
import decimal
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

LONGEST = 50_000
"""Characters that the arguments of one call may have as JSON."""
DIGITS = 1_000
"""The largest precision, exponent or number of places that is worked out."""
NODES = 5_000
"""Files and folders that may be reached from the root of a file system, counted along every path."""
CHARACTERS = 2_000_000
"""Characters that all its files may have together."""
MISFIT = 500
"""Characters of arguments that do not fit their schema and are tried all the same."""
LARGE = 100_000
"""The largest number in such arguments: a text may be multiplied by it."""
_BOUNDED = {"precision": DIGITS, "decimal_places": DIGITS, "exponent": DIGITS}


def too_much(arguments: Mapping[str, Any]) -> str | None:
    """Why a call is not made, though its arguments fit: what it would cost; None where nothing speaks against it."""
    if len(json.dumps(arguments)) > LONGEST:
        return f"the arguments have more than {LONGEST} characters; send fewer"
    for name, most in _BOUNDED.items():
        value = arguments.get(name)
        if isinstance(value, (int, float)) and abs(value) > most:
            return f"{name} is {value}; it may be {-most} to {most}"
    for value in arguments.values():
        if isinstance(value, int) and value.bit_length() > 256:
            return "a whole number has more than 77 digits; send a smaller one"
    return None


def harmless(arguments: Any) -> bool:
    """Whether arguments that do not fit their schema may be tried: few, plain and small."""
    if not isinstance(arguments, dict) or not all(isinstance(name, str) and name for name in arguments):
        return False
    try:
        text = json.dumps(arguments, allow_nan=False, ensure_ascii=False)
        return len(text.encode()) <= MISFIT and all(map(_small, arguments.values()))
    except (TypeError, ValueError, RecursionError):
        return False


def _small(value: Any, depth: int = 0) -> bool:
    if isinstance(value, (int, float)):
        return abs(value) <= LARGE
    if isinstance(value, (list, dict)):
        return depth < 4 and all(
            _small(item, depth + 1) for item in (value.values() if isinstance(value, dict) else value)
        )
    return True


def too_large(file_system: Any) -> bool:
    """Whether a file system has grown beyond what may be walked: copies share their folders, so that a few calls can
    make millions of paths, and a folder that is moved into itself has no end."""
    nodes = characters = 0
    waiting = [file_system.root, file_system._current_dir]
    while waiting:
        nodes += 1
        item = waiting.pop()
        if hasattr(item, "contents"):
            waiting.extend(item.contents.values())
        else:
            characters += len(str(item.content))
        if nodes > NODES or characters > CHARACTERS:
            return True
    return False


@contextlib.contextmanager
def restored_precision() -> Iterator[None]:
    """BFCL's MathAPI sets how precisely everybody in this process calculates: put it back."""
    mpmath = import_module("mpmath")
    before = mpmath.mp.prec
    with decimal.localcontext():
        try:
            yield
        finally:
            mpmath.mp.prec = before
