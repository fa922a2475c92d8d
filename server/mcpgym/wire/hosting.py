"""The SDK's machinery behind HTTP: one MCP server per face, each with its session manager in a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from mcpgym.wire.mcp_server import mcp_server
from mcpgym.wire.players import Face

logger = logging.getLogger(__name__)

MAX_FACES = 128
"""MCP servers kept ready; a configuration that changes what its environment says of itself needs one more."""


class _Hosted:
    """One MCP server, ready for requests. Its manager is entered and left in the same task, as anyio demands."""

    def __init__(self, face: Face, max_body: int) -> None:
        # Host and Origin were checked before a request gets here, on every path; see hosts.py.
        self._manager = StreamableHTTPSessionManager(
            mcp_server(face), json_response=True, stateless=True, max_request_body_size=max_body
        )
        self.busy = 0
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._stop.wait()

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        self.busy += 1
        try:
            if not self._ready.is_set():
                await self._ready.wait()
            await self._manager.handle_request(scope, receive, send)
        finally:
            self.busy -= 1

    async def aclose(self) -> None:
        """Stop, and cancel what is still being answered."""
        self._stop.set()
        await asyncio.wait([self._task])
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            logger.error("an MCP server ended badly", exc_info=error)


class Hosting:
    """The MCP servers of one listener, made when they are first needed."""

    def __init__(self, max_body: int) -> None:
        self._max_body = max_body
        self._hosted: OrderedDict[Face, _Hosted] = OrderedDict()
        self._leaving: set[asyncio.Task[None]] = set()
        self._open = False

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while inside; outside, nothing runs."""
        if self._open:
            raise RuntimeError("these MCP servers are already running")
        self._open = True
        try:
            yield
        finally:
            self._open = False
            hosted = list(self._hosted.values())
            self._hosted.clear()
            await asyncio.gather(*(one.aclose() for one in hosted), *self._leaving)

    async def handle(self, face: Face, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request as ``face``."""
        if not self._open:
            raise RuntimeError("enter `async with app.running():` before the first request")
        hosted = self._hosted.get(face)
        if hosted is None:
            hosted = self._hosted[face] = _Hosted(face, self._max_body)
            self._make_room()
        self._hosted.move_to_end(face)
        await hosted.handle(scope, receive, send)

    def _make_room(self) -> None:
        """Let the servers go that have been idle longest, beyond ``MAX_FACES``."""
        idle = [face for face, hosted in list(self._hosted.items())[:-1] if not hosted.busy]
        for face in idle[: max(0, len(self._hosted) - MAX_FACES)]:
            leaving = asyncio.get_running_loop().create_task(self._hosted.pop(face).aclose())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
