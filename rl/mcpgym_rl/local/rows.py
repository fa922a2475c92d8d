"""Who has which row of the backend's cache.

Rows are finite, lines are not. A line keeps its row between its turns, so that each turn appends only what is new;
when others wait, the row whose line has rested longest is taken from it, and filled anew when that line comes back.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict

from mcpgym_rl.local.backend import Backend
from mcpgym_rl.local.line import Line, Request
from mcpgym_rl.local.turns import Turns


class Rows:
    """The rows of a backend, and the lines that have them.

    Args:
        backend: whose rows they are.
        turns: what is under way in them.
        most: how many there may be.
        cache_bytes: how much memory they may take; it allows fewer where conversations are long.
    """

    def __init__(self, backend: Backend, turns: Turns, *, most: int, cache_bytes: int) -> None:
        self.backend = backend
        self.turns = turns
        self.most, self.cache_bytes = most, cache_bytes
        self.count = self.tokens = 0
        """How many rows there are, and how many tokens each of them takes."""
        self.owners: dict[int, Line] = {}
        self.resting: OrderedDict[int, None] = OrderedDict()
        """Rows in which no turn is under way; the one that has rested longest comes first."""
        self.free: list[int] = []
        """Rows that no line has: a heap."""

    def give(self, line: Line) -> bool:
        """Give ``line`` a row; whether there was one."""
        if line.row is not None:
            return True
        if not self.free and self.count < (allowed := self._allowed(self.tokens)):
            self._grow(min(max(8, self.count + self.count // 2), allowed), self.tokens)
        if not self.free:
            if not self.resting:
                return False
            self._evict(next(iter(self.resting)))
        row = heapq.heappop(self.free)
        line.row, line.cached = row, 0
        self.owners[row] = line
        return True

    def wake(self, line: Line) -> None:
        """``line`` is about to go on: its row, if it has one, is not taken from it."""
        if line.row is not None:
            self.resting.pop(line.row, None)

    def rest(self, row: int) -> None:
        """The turn that was under way in a row is over."""
        self.resting[row] = None

    def release(self, line: Line) -> None:
        """``line`` has ended: a copy of it that has no row gets its row, or else it is free."""
        if line.row is not None:
            self._bequeath(line)
        if line.row is not None:
            self._evict(line.row)

    def forget(self) -> None:
        """Take their rows from all lines that have no turn under way."""
        for row in list(self.owners):
            if row not in self.turns.running:
                self._evict(row)

    def _evict(self, row: int) -> None:
        """Take a row from its line."""
        if row in self.turns.running:
            self.turns.stop(row)
        line = self.owners.pop(row)
        line.row, line.cached = None, 0
        self.resting.pop(row, None)
        heapq.heappush(self.free, row)

    # Forks.

    def inherit(self, line: Line) -> None:
        """Copy what a fork's original still has in its row."""
        if line.cached or line._source is None:
            return
        source, tokens = line._source
        line._source = None
        tokens = min(tokens, source.cached, len(line.ids) - 1)
        if source.row is not None and tokens > 0 and line.row is not None:
            self.backend.copy(source.row, line.row, tokens)
            line.cached = tokens

    def _bequeath(self, line: Line) -> None:
        """The first copy that has no row yet gets the row of ``line``; the others now copy that one."""
        heirs = [copy for copy in line._copies if copy._source is not None and copy._source[0] is line]
        line._copies.clear()
        if not heirs or line.row is None:
            return
        first, row = heirs[0], line.row
        assert first._source is not None
        first.row, first.cached = row, min(first._source[1], line.cached)
        first._source = None
        line.row, line.cached = None, 0
        self.owners[row] = first
        for heir in heirs[1:]:
            assert heir._source is not None
            heir._source = (first, min(heir._source[1], first.cached))
        first._copies += heirs[1:]

    # Room.

    def _allowed(self, tokens: int) -> int:
        """How many rows of ``tokens`` tokens there may be."""
        return max(1, min(self.most, self.cache_bytes // max(1, self.backend.row_bytes(max(tokens, 1)))))

    def lengthen(self, needed: int, positions: int) -> list[Request]:
        """Make rows that take ``needed`` tokens. Where that makes them too many, some turns must wait for another.

        Args:
            needed: tokens.
            positions: how many tokens a conversation may have.

        Returns:
            The requests of the turns that must wait.
        """
        if needed <= self.tokens:
            return []
        tokens = max(needed, min(self.tokens + self.tokens // 4, positions))
        if self.count > self._allowed(tokens):
            tokens = needed
        allowed = self._allowed(tokens)
        interrupted: list[Request] = []
        for row in range(allowed, self.count):
            if row in self.turns.running:
                interrupted.append(self.turns.interrupt(row))
            if row in self.owners:
                self._evict(row)
        self.free = [row for row in self.free if row < allowed]
        heapq.heapify(self.free)
        self._grow(min(self.count, allowed), tokens)
        return interrupted

    def _grow(self, rows: int, tokens: int) -> None:
        """Have exactly ``rows`` rows of ``tokens`` tokens."""
        self.backend.reserve(rows, tokens)
        for row in range(self.count, rows):
            heapq.heappush(self.free, row)
        self.count, self.tokens = rows, tokens
        self.turns.grow(rows)
