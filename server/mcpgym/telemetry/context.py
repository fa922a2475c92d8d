"""The span that is current, and its W3C form (``traceparent``): what makes one trace of many processes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from random import Random
from typing import Any, Literal, NamedTuple

TRACEPARENT = "traceparent"
"""The key in MCP's ``_meta`` and the name of the HTTP header."""
_FORM = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)
_random = Random(secrets.randbits(128))  # of our own: ids must take nothing from a generator that a run has seeded

Way = Literal["", "mcp", "control"]
"""How a call came: in process, over MCP, or over the control plane's HTTP."""


class Context(NamedTuple):
    """A span as others refer to it. Without an id there is none: it then says only which way a call came."""

    trace: bytes
    span: bytes
    sampled: bool
    remote: bool = False
    way: Way = ""


NOBODY: dict[Way, Context] = {
    "mcp": Context(b"", b"", False, True, "mcp"),
    "control": Context(b"", b"", False, True, "control"),
}
"""Callers that named no span, by the way they came."""
CURRENT: ContextVar[Context | None] = ContextVar("mcpgym.telemetry.current", default=None)
"""The span that what happens now belongs to."""


def new_trace() -> bytes:
    """16 random bytes, never all zero."""
    return _random.getrandbits(128).to_bytes(16, "big") or new_trace()


def new_span() -> bytes:
    """8 random bytes."""
    return _random.getrandbits(64).to_bytes(8, "big")


def new_spans(count: int) -> bytes:
    """So many times :func:`new_span` in one, in much less time."""
    return _random.randbytes(8 * count)


def read(traceparent: Any, way: Way) -> Context:
    """The caller's span. What is no ``traceparent`` (clients may send anything) counts as none."""
    if type(traceparent) is not str or not _FORM.match(traceparent):
        return NOBODY[way]
    if len(traceparent) > 55 and (traceparent[55] != "-" or traceparent.startswith("00")):
        return NOBODY[way]
    if traceparent.startswith("ff"):
        return NOBODY[way]
    trace, span = bytes.fromhex(traceparent[3:35]), bytes.fromhex(traceparent[36:52])
    if trace == _NO_TRACE or span == _NO_SPAN:
        return NOBODY[way]
    return Context(trace, span, traceparent[54] in "13579bdf", True, way)


def caller(carrier: Any, way: Way) -> Context:
    """The span that a call's ``_meta``, or a request's headers, name."""
    found = carrier.get(TRACEPARENT) if isinstance(carrier, (dict, Mapping)) else None
    return NOBODY[way] if found is None else read(found, way)


def write(context: Context) -> str:
    """``context`` as a ``traceparent``."""
    return f"00-{context.trace.hex()}-{context.span.hex()}-{'01' if context.sampled else '00'}"


def carry(carrier: MutableMapping[str, Any]) -> None:
    """Put the current span, if there is one, into ``carrier``: a call's ``_meta``, or a request's headers."""
    current = CURRENT.get()
    if current is not None and current.trace:
        carrier[TRACEPARENT] = write(current)
