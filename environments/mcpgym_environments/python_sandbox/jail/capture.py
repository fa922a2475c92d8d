"""Output of any length in memory of a fixed size: its beginning, its end and how much lay between."""

from __future__ import annotations


class Capture:
    """Keeps the first and the last half of ``limit`` bytes of all that it is fed.

    Args:
        limit: how many bytes are kept in all.
    """

    __slots__ = ("_head", "_head_limit", "_tail", "_tail_limit", "total")

    def __init__(self, limit: int) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        """How many bytes have come."""

    def feed(self, data: bytes) -> None:
        """More output."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail += data[-self._tail_limit :] if self._tail_limit else b""
            if len(self._tail) > 4 * self._tail_limit + 65_536:  # cut seldom: cutting moves what is kept
                del self._tail[: len(self._tail) - self._tail_limit]

    @property
    def omitted(self) -> int:
        """How many bytes are not kept."""
        return max(0, self.total - self._head_limit - self._tail_limit)

    def kept(self) -> bytes:
        """The beginning and the end, with nothing between them to mark the cut."""
        start = max(0, len(self._tail) - self._tail_limit)
        return bytes(self._head) + bytes(memoryview(self._tail)[start:])
