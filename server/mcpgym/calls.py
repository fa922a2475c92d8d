"""What is asked and answered in one call, what is kept of it, and what a policy's arguments may be at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

MAX_DEPTH = 64
"""Levels of lists and objects that arguments may have."""


class CallResult(NamedTuple):
    """What the policy reads of one call, and whether the episode is over after it."""

    text: str
    is_error: bool = False
    done: bool = False


class CallRecord(NamedTuple):
    """One line of an episode's call log. ``milliseconds`` is the time inside the environment."""

    name: str
    arguments: Mapping[str, Any]
    text: str
    is_error: bool
    milliseconds: float


def weight(arguments: Any) -> int:
    """About how many characters ``arguments`` take; exact enough to bound what is kept of them."""
    if not isinstance(arguments, dict):
        return len(_written(arguments))
    total = 0
    for value in arguments.values():
        if isinstance(value, str):
            total += len(value)
        else:
            total += len(_written(value)) if isinstance(value, (list, dict)) else 8
    return total


def too_deep(arguments: Any) -> bool:
    """Whether ``arguments`` have more than ``MAX_DEPTH`` levels."""
    level = [arguments]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
        if not below:
            return False
        level = below
    return any(isinstance(node, (dict, list)) for node in level)


def too_deep_answer(name: str) -> str:
    """What the policy reads of a call whose arguments are :func:`too_deep`."""
    return f"{name[:100]}: arguments nested deeper than {MAX_DEPTH} levels are not read; send flatter ones"


def no_such_tool(name: str, known: Iterable[str]) -> str:
    """What the policy reads of a call to a tool that is not there."""
    return f"there is no tool {name[:100]!r}; there is: {', '.join(known) or 'none'}"


def fingerprint(arguments: Any) -> str:
    """A short text that is equal for equal arguments, whatever a client sent as them."""
    text = _written(arguments)
    return text if len(text) <= 256 else hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _written(arguments: Any) -> str:
    try:
        return json.dumps(arguments, sort_keys=True, default=repr)
    except RecursionError:
        return "too deep"  # such calls are all refused alike
    except (TypeError, ValueError):
        return repr(arguments)


def sendable(text: str) -> str:
    """``text`` as UTF-8 can carry it: a lone surrogate (from a file name, or from a policy) is written out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def answer_text(answer: Any) -> str:
    """What a policy reads of a handler's answer: text as it is, nothing for None, JSON for the rest."""
    if isinstance(answer, str):
        return answer
    return "" if answer is None else json.dumps(answer, ensure_ascii=False)
