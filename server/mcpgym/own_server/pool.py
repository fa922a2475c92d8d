"""A warm pool: servers that are started before an episode needs them, for starting a process takes a second."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable

from mcpgym.errors import McpgymError
from mcpgym.own_server.connection import Connection

logger = logging.getLogger(__name__)

STARTS = max(2, os.cpu_count() or 2)
"""How many servers may be starting at once."""


class Pool:
    """Servers of one command. Each is given once, and never comes back.

    Args:
        start: starts one, to its open connection.
        size: how many wait, ready; filled in the background once the first was taken.
    """

    def __init__(self, start: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._start = start
        self._size = size
        self._ready: deque[Connection] = deque()
        self._filling: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starts = asyncio.Semaphore(STARTS)
        self._closed = False

    @property
    def ready(self) -> int:
        """How many wait."""
        return len(self._ready)

    async def take(self, start: Callable[[], Awaitable[Connection]] | None = None) -> Connection:
        """A server that nobody had, ready or started now (by ``start``, where it is to be another than the pool's).

        Raises:
            InfrastructureError: it does not start.
        """
        self._enter()
        while start is None and self._ready:
            connection = self._ready.popleft()
            self._fill()
            if connection.alive:
                return connection
            await connection.close()
        async with self._starts:
            connection = await (start or self._start)()
        if start is None:
            self._fill()  # only now: what nobody waits for does not hold up what somebody does
        return connection

    def _enter(self) -> None:
        """Connections belong to one event loop; those of a loop that has ended are gone with it."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._starts = loop, asyncio.Semaphore(STARTS)
            self._ready.clear()
            self._filling.clear()

    def _fill(self) -> None:
        while not self._closed and len(self._ready) + len(self._filling) < self._size:
            task = asyncio.get_running_loop().create_task(self._fill_one())
            self._filling.add(task)
            task.add_done_callback(self._filling.discard)

    async def _fill_one(self) -> None:
        try:
            async with self._starts:
                connection = await self._start()
        except McpgymError as error:  # whoever needs one finds out
            logger.debug("no server could be kept ready: %s", error)
            return
        if self._closed:
            await connection.close()
        else:
            self._ready.append(connection)

    async def aclose(self) -> None:
        """End those that wait."""
        self._closed = True
        for task in list(self._filling):
            task.cancel()
        if self._filling:
            await asyncio.wait(set(self._filling))
        ready = list(self._ready)
        self._ready.clear()
        await asyncio.gather(*(connection.close() for connection in ready))
        self._closed = False

    def forget(self) -> None:
        """End those that wait, soon: nobody is left who could ask for one. May be called from any thread."""
        self._closed = True
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: loop.create_task(self.aclose()))
