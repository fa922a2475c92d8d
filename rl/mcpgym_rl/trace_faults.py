"""What is wrong with the parts of a trace that was read from a file: it may be anybody's, and whoever reads it next
counts on their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcpgym.messages import message_fault
from mcpgym.rewards import LARGEST

Check = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST  # nan is not


def _or_none(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_or_none(_number), value.values()))


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


_PARTS: Mapping[str, Mapping[str, Check]] = {
    "score": {
        "total": _or_none(_number),
        "components": _numbers,
        "game_outcome": _or_none(_text),
        "receipt": _or_none(_mapping),
    },
    "error": {"kind": _text, "message": _text},
    "usage": {"prompt_tokens": _integer, "completion_tokens": _integer, "cached_tokens": _or_none(_integer)},
    "tokens": {
        "ids": _list_of(_integer),
        "mask": _list_of(lambda value: value in (0, 1)),
        "logprobs": _list_of(_or_none(_number)),
        "temperatures": _or_none(_list_of(_number)),
    },
}
_CALL: Mapping[str, Check] = {
    "name": _text,
    "arguments": _mapping,
    "result": _text,
    "is_error": _flag,
    "milliseconds": _number,
}
_COUNTS = ("repeat", "place", "prompt_messages", "turns", "given_turns")


def trace_fault(data: Mapping[str, Any]) -> str | None:
    """What is wrong within the fields of a trace, whose own types are right; None if nothing is."""
    for name, checks in _PARTS.items():
        if (fault := _fault(name, data.get(name), checks)) is not None:
            return fault
    for place, call in enumerate(data["calls"]):
        if not isinstance(call, Mapping):
            return f"calls[{place}] is {type(call).__name__}, not an object"
        if (fault := _fault(f"calls[{place}]", call, _CALL)) is not None:
            return fault
    for place, message in enumerate(data["messages"]):
        if (fault := message_fault(message)) is not None:
            return f"messages[{place}] {fault[:120]}"
    for name in _COUNTS:
        if not 0 <= data.get(name, 0) <= LARGEST:
            return f"{name!r} cannot be {str(data[name])[:80]}"
    if not _number(data.get("seconds", 0)):
        return "'seconds' is no number of seconds"
    return None


def _fault(name: str, part: Mapping[str, Any] | None, checks: Mapping[str, Check]) -> str | None:
    if part is None:
        return None
    for field, check in checks.items():
        if field in part and not check(part[field]):
            return f"{name}.{field} cannot be {_shown(part[field])}"
    return None


def _shown(value: Any) -> str:
    try:
        return repr(value)[:80]
    except (ValueError, RecursionError):  # an integer of too many digits, or nested beyond reading
        return f"this {type(value).__name__}"
