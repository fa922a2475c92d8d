"""A semaphore that belongs to no event loop: sessions and pools are used from several, one after another or at once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque


class Turns:
    """Lets so many at once go on, in the order in which they asked.

    Args:
        count: how many.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = count
        self._lock = threading.Lock()
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._given: set[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = set()  # to other loops, on their way

    @property
    def busy(self) -> int:
        """How many go on now."""
        return self.count - self._free

    @property
    def waiting(self) -> int:
        """How many wait; those whose loop has ended may be among them."""
        return len(self._waiting)

    async def __aenter__(self) -> None:
        with self._lock:
            if not self._free and self._given:
                lost = {one for one in self._given if one[0].is_closed()}  # those loops will hand on nothing
                self._given -= lost
                self._free += len(lost)
            if self._free:  # then nobody waits
                self._free -= 1
                return
            loop = asyncio.get_running_loop()
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append((loop, turn))
        try:
            await turn
        except BaseException:
            with self._lock, contextlib.suppress(ValueError):
                self._waiting.remove((loop, turn))
            if not turn.cancelled():
                self._next()  # it came, to who no longer wants it
            raise

    async def __aexit__(self, *exception: object) -> None:
        self._next()

    def leave(self) -> None:
        """Hand on a turn that was entered."""
        self._next()

    def _next(self) -> None:
        """The turn goes to who waits longest, if that one's loop is still there."""
        here = asyncio._get_running_loop()
        while True:
            with self._lock:
                if not self._waiting:
                    self._free += 1
                    return
                loop, turn = self._waiting.popleft()
                if loop is not here:
                    self._given.add((loop, turn))
            if loop is here:
                if turn.done():  # cancelled, and about to leave the line
                    continue
                turn.set_result(None)
                return
            try:
                loop.call_soon_threadsafe(self._give, loop, turn)
            except RuntimeError:  # that loop was closed
                with self._lock:
                    if (loop, turn) not in self._given:
                        return  # somebody has found that out, and taken the turn
                    self._given.discard((loop, turn))
                continue
            return

    def _give(self, loop: asyncio.AbstractEventLoop, turn: asyncio.Future[None]) -> None:
        with self._lock:
            self._given.discard((loop, turn))
        if turn.done():
            self._next()
        else:
            turn.set_result(None)


class Turn:
    """One turn, which may be left for a while and come back to.

    Args:
        turns: whose it is.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._has = False

    async def __aenter__(self) -> Turn:
        await self._turns.__aenter__()
        self._has = True
        return self

    def leave(self) -> None:
        """Others may go on meanwhile."""
        if self._has:
            self._has = False
            self._turns.leave()

    async def come_back(self) -> None:
        """Wait for a turn again."""
        if not self._has:
            await self._turns.__aenter__()
            self._has = True

    async def __aexit__(self, *exception: object) -> None:
        self.leave()
