"""What a span is here: a few constants that many spans share, and the little that is each one's own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import IntEnum

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

    __slots__ = ("attributes", "encoded", "span")

    def __init__(self, attributes: Attributes, span: Context) -> None:
        self.attributes, self.span = attributes, span
        self.encoded: bytes | None = None


Ended = tuple[bytes, bytes, Context | None, int, int, Shape, Owner | None, Attributes | None]
"""A span that is over: its trace and span id, its parent, when it began and ended (nanoseconds since 1970), and what
is said of it, from the most common to its own. A plain tuple: there may be one for each call."""


def digest(token: str) -> str:
    """The public name of an episode: the same for its spans and log lines, and no way back to its token."""
    return hashlib.sha256(b"mcpgym episode\0" + token.encode()).hexdigest()[:12]
