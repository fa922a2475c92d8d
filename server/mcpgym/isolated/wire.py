"""What goes between the two processes: one JSON object a line, over a socket that nobody else can reach.

A request is ``{"id", "ask", "with"}``, ``{"cancel": id}`` takes one back, an answer is ``{"id", "result"}`` or ``{"id",
"error"}``. An error arrives as one of the same kind and name, so that what is told of it is told in the same words.
"""

from __future__ import annotations

import json
import traceback
from functools import cache
from typing import Any

from mcpgym import errors
from mcpgym.errors import ConfigurationError, InfrastructureError, McpgymError, ToolError

PROTOCOL = 1
"""Changes with what is asked and answered; two processes that differ in it do not work together."""
MAX_TRACE = 20_000
"""Characters of a traceback that are told."""
_KINDS: dict[str, type[Exception]] = {
    "tool": ToolError,
    "configuration": ConfigurationError,
    "infrastructure": InfrastructureError,
    "ours": McpgymError,
    "value": ValueError,
    "other": Exception,
}
"""In this order: the first that an error is decides."""


class TheirTraceback(Exception):
    """Where an error was raised in the other process: the cause of the one that is raised here."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def encode(message: Any) -> bytes:
    """One line.

    Raises:
        TypeError, ValueError, RecursionError: it has what JSON has not.
    """
    return json.dumps(message, separators=(",", ":"), check_circular=False).encode() + b"\n"


def decode(line: bytes) -> Any:
    """The message of a line.

    Raises:
        ValueError: it is none.
    """
    return json.loads(line)


def encode_error(error: BaseException) -> dict[str, str]:
    """An error as JSON."""
    kind = next((kind for kind, cls in _KINDS.items() if isinstance(error, cls)), "other")
    told = "" if isinstance(error, McpgymError | ToolError) else "".join(traceback.format_exception(error))
    return {"kind": kind, "type": type(error).__name__, "text": str(error), "trace": told[-MAX_TRACE:]}


def decode_error(value: Any) -> Exception:
    """The error that JSON means."""
    cls = _class(str(value["kind"]), str(value["type"]))
    made: Exception = cls.__new__(cls)
    Exception.__init__(made, str(value["text"]))  # what makes up a text of its own has made it there
    if value.get("trace"):
        made.__cause__ = TheirTraceback(str(value["trace"]))
    return made


@cache
def _class(kind: str, name: str) -> type[Exception]:
    """Our class of this name, or one made for it, of the same kind."""
    base = _KINDS.get(kind, Exception)
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, base):
        return known
    return base if base.__name__ == name else type(name, (base,), {"__module__": "mcpgym.isolated"})
