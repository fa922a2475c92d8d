"""What runs beside the rest in one event loop: HTTP servers on sockets of ours, and contexts held open in tasks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from mcpgym.connections import BoundedHttp

logger = logging.getLogger(__name__)

BACKLOG = 4096
"""Connections that may wait to be accepted: a burst of episodes must not be refused."""
KEEP_ALIVE_SECONDS = 300
"""How long an idle connection is kept; clients keep theirs for less, so that none calls into a closing one."""
GRACE_SECONDS = 3
"""How long what runs may take to finish once it is told to stop."""


class HttpServer(uvicorn.Server):
    """A uvicorn server on a listening socket; it leaves signals alone and tells when it is ready.

    ``connection`` is the class of its connections.
    """

    def __init__(self, app: ASGIApp, listening: socket.socket, connection: type[BoundedHttp] = BoundedHttp) -> None:
        super().__init__(
            uvicorn.Config(
                cast(Any, app),
                http=connection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        self._socket = listening
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Start, and return when connections are accepted."""
        self._task = asyncio.ensure_future(self.serve(sockets=[self._socket]))
        await _ready_or_failed(self._ready, self._task)

    async def end(self) -> None:
        """Stop accepting, let requests in flight finish for a while, and cancel the rest."""
        self.should_exit = True
        if self._task is not None:
            await asyncio.wait({self._task})
            if not self._task.cancelled() and (error := self._task.exception()) is not None:
                logger.error("a listener ended badly", exc_info=error)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Uvicorn's own, and then say so."""
        await super().startup(sockets)
        self._ready.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the program's business."""
        yield


@contextlib.asynccontextmanager
async def held(open_context: Callable[[], AbstractAsyncContextManager[Any]]) -> AsyncIterator[None]:
    """Keep a context open in a task of its own, so that its task groups never wrap the errors of our caller."""
    ready, over = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with open_context():
            ready.set()
            await over.wait()

    task = asyncio.ensure_future(hold())
    try:
        await _ready_or_failed(ready, task)
        yield
    finally:
        over.set()
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
        await cancel(task)


async def cancel(task: asyncio.Future[Any]) -> None:
    """Cancel ``task`` and wait a while for its end; what it failed with goes to the log."""
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        logger.error("a part of the server ended badly", exc_info=error)


async def _ready_or_failed(ready: asyncio.Event, task: asyncio.Task[None]) -> None:
    waiting = asyncio.ensure_future(ready.wait())
    try:
        await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
    if task.done():
        task.result()  # raises what went wrong
        raise RuntimeError("a part of the server ended while it started")
