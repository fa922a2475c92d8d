"""A stream over one end of a socket pair: what almost every back-end hands over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable

READ_AHEAD = 65_536
"""How much one reading asks the kernel for: a whole answer, nearly always."""


class SocketStream:
    """A :class:`~mcpgym_environments.python_sandbox.sessions.backend.Stream` over a connected socket.

    Args:
        connection: this side's end; the stream owns it from now on.
        kill: ends what is at the other side (a signal through a pidfd, say); called once at most.
        process: the session's first process on this machine, where it has one here.
    """

    def __init__(
        self, connection: socket.socket, kill: Callable[[], object] | None = None, process: int | None = None
    ) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._number = connection.fileno()
        self._kill = kill
        self._process = process
        self._ours = os.getpid()
        self._held = bytearray()
        self._lock = threading.Lock()
        self._users = 0  # who is in send or receive: the descriptor must stay theirs until they leave
        self._dead = False

    @property
    def process(self) -> int | None:
        """The session's first process on this machine."""
        return self._process

    async def send(self, data: bytes) -> None:
        """Send all of ``data``; cancelled, it may have sent a part.

        Raises:
            OSError: the other side is gone.
        """
        self._enter()
        try:
            try:
                sent = self._socket.send(data)  # nearly always all of it, and no turn of the loop
            except (BlockingIOError, InterruptedError):
                sent = 0
            if sent < len(data):
                await asyncio.get_running_loop().sock_sendall(self._socket, memoryview(data)[sent:])
        finally:
            self._leave()

    async def receive(self, count: int) -> bytes:
        """Exactly ``count`` bytes.

        Raises:
            EOFError: the other side ended before.
            OSError: the connection broke.
        """
        held = self._held
        if len(held) < count:
            self._enter()
            try:
                await self._readable()  # not sock_recv: cancelled at the wrong moment, it loses what it has read
                while len(held) < count:
                    try:
                        part = self._socket.recv(max(READ_AHEAD, min(count - len(held), 1 << 20)))
                    except (BlockingIOError, InterruptedError):
                        await self._readable()
                        continue
                    if not part:
                        raise EOFError("the agent closed its end")
                    held += part
            finally:
                self._leave()
        taken = bytes(memoryview(held)[:count])
        del held[:count]
        return taken

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(self._number, _set, ready)
        try:
            await ready
        finally:
            loop.remove_reader(self._number)

    def kill(self) -> None:
        """End the other side, and both directions of this one; the descriptor is let go when nobody uses it.

        In a fork of the process that made it, nothing: the session is its parent's.
        """
        if os.getpid() != self._ours:
            return
        with self._lock:
            if self._dead:
                return
            self._dead = True
            kill, self._kill = self._kill, None
            if kill is not None:
                with contextlib.suppress(OSError):
                    kill()
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # wakes who waits in receive, in whatever loop
            if not self._users:
                self._socket.close()

    def _enter(self) -> None:
        if os.getpid() != self._ours:
            raise EOFError("it is another process's, which forked this one")
        with self._lock:
            if self._dead:
                raise EOFError("the session was ended")
            self._users += 1

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._dead and not self._users:
                self._socket.close()


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
