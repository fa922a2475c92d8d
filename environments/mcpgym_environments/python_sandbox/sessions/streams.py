"""A stream over one end of a socket pair: what almost every back-end hands over."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

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
        self.greeting: Mapping[str, Any] | None = None
        """What the agent answered to its first frame, if the back-end has sent that: ``python`` and ``packages``."""
        self._ours = os.getpid()
        self._held: list[bytes] = []
        self._size = 0  # of what is held
        self._count = 0  # how much is waited for
        self._loop: asyncio.AbstractEventLoop | None = None  # that watches for who receives
        self._watched: set[asyncio.AbstractEventLoop] = set()  # all that still watch
        self._waiter: asyncio.Future[None] | None = None
        self._lock = threading.Lock()
        self._users = 0  # who is in send or receive: the descriptor must stay theirs until they leave
        self._dead = False

    @property
    def process(self) -> int | None:
        """The session's first process on this machine."""
        return self._process

    async def send(self, data: bytes, seconds: float | None = None) -> None:
        """Send all of ``data``; cancelled or out of time, it may have sent a part.

        Raises:
            OSError: the other side is gone.
            TimeoutError: it took longer than ``seconds``.
        """
        self._enter()
        try:
            try:
                sent = self._socket.send(data)  # nearly always all of it, and no turn of the loop
            except (BlockingIOError, InterruptedError):
                sent = 0
            if sent < len(data):
                async with asyncio.timeout(seconds):
                    await asyncio.get_running_loop().sock_sendall(self._socket, memoryview(data)[sent:])
        finally:
            self._leave()

    async def receive(self, count: int, seconds: float | None = None) -> bytes:
        """Exactly ``count`` bytes.

        Raises:
            EOFError: the other side ended before.
            OSError: the connection broke.
            TimeoutError: they did not come within ``seconds``.
        """
        if self._size < count:
            self._enter()
            try:
                await self._until(count, seconds)
            finally:
                self._leave()
        held = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        self._held = [held[count:]]
        self._size -= count
        return held[:count]

    def is_quiet(self) -> bool:
        """Whether the other side is there and has sent nothing that was not received."""
        try:
            self._enter()
        except EOFError:
            return False
        try:
            if not self._size:
                self._socket.recv(1, socket.MSG_PEEK)  # a byte, or the end
            return False
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            return False
        finally:
            self._leave()

    async def _until(self, count: int, seconds: float | None) -> None:
        """Until ``count`` bytes are held. What came stays, should this be cancelled.

        The loop goes on watching the descriptor from one call to the next; it is told to stop when something comes that
        nobody waits for, when another loop is used, and at the end.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            with self._lock:
                self._loop = loop
                self._watched.add(loop)
            loop.add_reader(self._number, self._wake, loop)
        self._count = count
        self._waiter = waiter = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _expire, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """Something can be received, says the loop. It is at once, or the loop would say so again."""
        waiter = self._waiter
        if waiter is None or self._loop is not loop:
            self._unwatch(loop)
            return
        if waiter.done():
            return
        left = self._count - self._size
        try:
            part = self._socket.recv(READ_AHEAD if left < READ_AHEAD else min(left, 1 << 20))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            waiter.set_exception(error)
            return
        if not part:
            waiter.set_exception(EOFError("the agent closed its end"))
            return
        self._held.append(part)
        self._size += len(part)
        if self._size >= self._count:
            waiter.set_result(None)

    def _unwatch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the loop, which is this thread's, watch the descriptor no more."""
        loop.remove_reader(self._number)
        with self._lock:
            self._watched.discard(loop)
            if self._loop is loop:
                self._loop = None
            self._let_go()

    def _let_go(self) -> None:
        """Close the socket once it is dead, nobody uses it and no loop watches it: its number may then be another's."""
        if not self._dead or self._users:
            return
        here = asyncio._get_running_loop()
        for loop in list(self._watched):
            if loop is here:
                loop.remove_reader(self._number)
            else:
                with contextlib.suppress(RuntimeError):  # it has been closed
                    loop.call_soon_threadsafe(self._unwatch, loop)
                    continue
            self._watched.discard(loop)
        if not self._watched:
            self._socket.close()

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
            self._let_go()

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
            if self._dead:
                self._let_go()


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
