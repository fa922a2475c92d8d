"""Calls that were answered and are no spans yet: rows of a few bytes, of which the exporting thread makes spans.

A call that names no span of its own is its episode's child, and all that is its own is which tool answered, how long
that took and when. Rows are small because calls are many: objects that wait in a queue push what the next calls need
out of the processor's caches, which costs those more than making the rows costs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mcpgym.telemetry.context import new_spans
from mcpgym.telemetry.spans import Ended, Owner, Shape

ROW = struct.Struct("<Hdq")
"""Which of the episode's shapes, milliseconds, and when it ended (nanoseconds since 1970)."""

pack = ROW.pack


class Calls(NamedTuple):
    """Rows on their way out: the episode, the shapes that they number, the rows, and 8 random bytes for each."""

    owner: Owner
    shapes: Sequence[Shape]
    rows: bytes
    ids: bytes

    def spans(self) -> Iterator[Ended]:
        """The same as spans."""
        owner, above = self.owner, self.owner.span
        for at, (shape, milliseconds, end) in zip(range(0, len(self.ids), 8), ROW.iter_unpack(self.rows), strict=True):
            start = end - int(milliseconds * 1e6)
            yield above.trace, self.ids[at : at + 8], above, start, end, self.shapes[shape], owner, None


class CallRows:
    """The rows of one episode. Written by whoever answers calls, taken by whoever exports, without a lock.

    Both do nothing but what the interpreter does in one step: rows come in at the end, and go at the beginning.
    """

    __slots__ = ("_owner", "rows", "shapes")

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self.rows = bytearray()
        self.shapes: list[Shape] = []

    def __len__(self) -> int:
        return len(self.rows) // ROW.size

    def number(self, shape: Shape) -> int:
        """The number of a shape, which gets one when it has none."""
        if shape not in self.shapes:
            self.shapes.append(shape)
        return self.shapes.index(shape)

    def take(self, most: int) -> Calls:
        """The oldest rows, at most so many."""
        rows = bytes(self.rows[: most * ROW.size])
        del self.rows[: len(rows)]
        return Calls(self._owner, self.shapes, rows, new_spans(len(rows) // ROW.size))
