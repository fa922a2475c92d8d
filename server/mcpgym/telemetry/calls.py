"""Calls that were answered and are no spans yet: of what little is each one's own, the exporting thread makes spans.

A call that names no span of its own is its episode's child, and all that is its own is how long it took and when that
was. The less is made and read while a call is answered the better: it is not in the processor's caches, so a span made
at once costs the call several times what it costs the exporting thread, which makes thousands in a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack
from typing import Any

from mcpgym.telemetry.context import new_spans
from mcpgym.telemetry.spans import Ended, Owner, Shape

FIELDS = 3
"""What waits of a call: its kind, its milliseconds, and when it ended (nanoseconds since 1970)."""


class CallKind:
    """What calls of one episode have in common that are of one tool, with one outcome, and came one way."""

    __slots__ = ("encoded", "owner", "shape")

    def __init__(self, owner: Owner, shape: Shape) -> None:
        self.owner, self.shape = owner, shape
        self.encoded: tuple[bytes, int] | None = None
        """For an encoder to keep: such a span, and where in it its own id begins."""


class Calls:
    """Calls on their way out: of each its kind, the id of its span, and when it began and ended.

    Args:
        waited: one call after the other, each with its ``FIELDS``.
    """

    __slots__ = ("ends", "ids", "kinds", "starts")

    def __init__(self, waited: list[Any]) -> None:
        self.kinds: list[CallKind] = waited[::FIELDS]
        self.ends: list[int] = waited[2::FIELDS]
        took = zip(self.ends, waited[1::FIELDS], strict=True)
        self.starts = [end - int(milliseconds * 1e6) for end, milliseconds in took]
        self.ids: tuple[int, ...] = unpack(f"<{len(self.ends)}Q", new_spans(len(self.ends)))

    def __len__(self) -> int:
        return len(self.kinds)

    def spans(self) -> Iterator[Ended]:
        """The same as spans."""
        for kind, id_, start, end in zip(self.kinds, self.ids, self.starts, self.ends, strict=True):
            above = kind.owner.span
            yield above.trace, id_.to_bytes(8, "little"), above, start, end, kind.shape, kind.owner, None
