"""What a span is here: a few constants that many spans share, and the little that is each one's own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import IntEnum
from typing import Protocol

from mcpgym.telemetry.context import Context

Value = str | bool | int | float | tuple[str, ...]
Attributes = Mapping[str, Value]


class Kind(IntEnum):
    """OTLP's numbers of the kinds of spans."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


class Shape:
    """What all spans of one kind have in common: made once, encoded once.

    Args:
        name: the spans' name.
        kind: see :class:`Kind`.
        attributes: of every such span.
        failed: whether their status is an error. (A status has a description in OpenTelemetry; ours never has.)
    """

    __slots__ = ("attributes", "encoded", "failed", "kind", "name")

    def __init__(self, name: str, kind: Kind, attributes: Attributes, *, failed: bool = False) -> None:
        self.name, self.kind, self.attributes, self.failed = name, kind, attributes, failed
        self.encoded: bytes | None = None


class Owner:
    """What all spans of one episode have in common: its name, and its own span where they are in other traces."""

    __slots__ = ("attributes", "encoded_child", "span")

    def __init__(self, attributes: Attributes, span: Context) -> None:
        self.attributes, self.span = attributes, span
        self.encoded_child: bytes | None = None


Ended = tuple[bytes, bytes, Context | None, int, int, Shape, Owner | None, Attributes | None]
"""A span that is over: its trace and span id, its parent, when it began and ended (nanoseconds since 1970), and what
is said of it, from the most common to its own. A plain tuple, for there is one for each call."""


class Makes(Protocol):
    """What knows the spans of an episode's calls."""

    def span_of(self, call: Unmade, own: bytes) -> Ended | None:
        """The span of ``call``, with the id ``own``; None where it is not sampled."""
        ...


Unmade = tuple[Makes, str, bool, float, Context | None, int]
"""A call that was answered, of which the thread that exports makes a span, so that the call itself waits for less: who
makes it, the tool's name, whether it failed, its milliseconds, its caller, and when it ended (nanoseconds since 1970).
A plain tuple too, and told from a span by what is first in it."""


def digest(token: str) -> str:
    """The public name of an episode: the same for its spans and log lines, and no way back to its token."""
    return hashlib.sha256(b"mcpgym episode\0" + token.encode()).hexdigest()[:12]
