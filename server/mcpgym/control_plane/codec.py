"""JSON on the control plane: strict both ways (no NaN, no infinity), and cheap on the path of batched calls."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from mcpgym.calls import CallResult
from mcpgym.control import Call, OpenedEpisode
from mcpgym.errors import ConfigurationError

MAX_CALLS = 4096
"""Calls in one batch. The client sends larger ones in parts."""


def decode(body: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ConfigurationError: it is not JSON.
    """
    try:
        return _DECODER.decode(body.decode("utf-8"))
    except UnicodeDecodeError:
        raise ConfigurationError("the body is not UTF-8") from None
    except RecursionError:
        raise ConfigurationError("the body is not JSON that can be read: it is nested too deeply") from None
    except ValueError as error:
        raise ConfigurationError(f"the body is not JSON: {error}") from None


def encode(value: Any) -> bytes:
    """JSON for ``value``; dataclasses become objects, and numbers that are not finite become null."""
    try:
        return _ENCODER.encode(value).encode()
    except ValueError:
        return _ENCODER.encode(_finite(value)).encode()


def encode_strictly(value: Any) -> bytes:
    """JSON for ``value``.

    Raises:
        ValueError, TypeError, RecursionError: it has no JSON form (NaN, infinities, a circle, other objects).
    """
    return _ENCODER.encode(value).encode()


def calls_of(value: Any) -> list[Call]:
    """The calls in the body of a step.

    Raises:
        ConfigurationError: it is not ``{"calls": [{"token", "name", "arguments", "key"}]}``; the text says where.
    """
    items = value.get("calls") if type(value) is dict and len(value) == 1 else None
    if type(items) is not list:
        raise ConfigurationError('the body of a step is {"calls": [...]}, and nothing else')
    if len(items) > MAX_CALLS:
        raise ConfigurationError(f"{len(items)} calls in one step; {MAX_CALLS} at most, send them in parts")
    calls: list[Call] = []
    for item in items:
        if type(item) is not dict:
            _refuse(len(calls), "is not an object")
        token, name, key = item.get("token"), item.get("name"), item.get("key")
        if type(token) is not str or type(name) is not str or not (key is None or type(key) is str):
            _refuse(len(calls), "needs token and name as strings; key is a string or null")
        if len(item) > 2 and not item.keys() <= _CALL_FIELDS:
            _refuse(len(calls), f"has {min(item.keys() - _CALL_FIELDS)!r}; there is: token, name, arguments, key")
        calls.append(Call(token, name, item.get("arguments", {}), key))
    return calls


def encode_results(results: Sequence[CallResult]) -> bytes:
    """The body that answers a step."""
    return _ENCODER.encode(
        {"results": [{"text": r.text, "is_error": r.is_error, "done": r.done} for r in results]}
    ).encode()


_CALL_FIELDS = frozenset({"token", "name", "arguments", "key"})


def _refuse(index: int, problem: str) -> NoReturn:
    raise ConfigurationError(f"calls[{index}] {problem}")


def _plain(value: Any) -> Any:
    """What the JSON encoder does not know."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if isinstance(value, OpenedEpisode) and not value.conditions:
            del made["conditions"]  # stands there only where there are some
        return made
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, int)) or value is None:
        return value
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_finite(item) for item in value]
    return _finite(_plain(value))


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite_float)
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=_plain)  # ASCII: any text survives
