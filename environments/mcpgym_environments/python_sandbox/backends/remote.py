"""What all back-ends have in common whose agent is reached through a provider's library.

A provider gives a :class:`Remote`: a process elsewhere, with bytes in, bytes out and an end. Here it becomes a stream
that belongs to no event loop: one end of a pair of sockets, with two tasks on the pool's loop that carry bytes between
the other end and the provider. Whatever ends first, the socket, the process or the provider's patience, ends the rest.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import socket
import threading
from collections.abc import Mapping
from typing import Protocol

from mcpgym_environments.python_sandbox.backends.greeting import facts_of
from mcpgym_environments.python_sandbox.backends.program import preamble
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Stream, Unavailable
from mcpgym_environments.python_sandbox.sessions.streams import SocketStream

START_SECONDS = 300.0
"""How long the first session may take: an image may have to be fetched."""
OPEN_SECONDS = 120.0
END_SECONDS = 15.0
"""How long a provider may take to end a session before it is left to the session's own lifetime."""
PIECE = 1 << 16
LONGEST_LINE = 1 << 16
"""The longest line of base64 that our relay writes is half as long."""


class Remote(Protocol):
    """A process elsewhere."""

    async def write(self, data: bytes) -> None:
        """Write all of it to the process's input."""
        ...

    async def read(self) -> bytes:
        """More of its output; nothing at its end."""
        ...

    async def kill(self) -> None:
        """End it and release what it was given; harmless when it has ended."""
        ...


class TextRemote:
    """A process whose streams carry text: bytes go as lines of base64, as ``program.RELAY`` speaks them.

    Subclasses write a text and :meth:`feed` what comes.
    """

    def __init__(self) -> None:
        self._texts: asyncio.Queue[str | None] = asyncio.Queue(maxsize=256)
        self._rest = ""

    async def feed(self, text: str) -> None:
        """What the provider's library gave of the process's output; waits while too much of it is unread."""
        await self._texts.put(text)

    def finish(self) -> None:
        """The output has ended."""
        if self._texts.full():  # whoever reads has given up, or has much to read before this
            self._texts.get_nowait()
        self._texts.put_nowait(None)

    async def write_text(self, text: str) -> None:
        """Write one line to the process's input."""
        raise NotImplementedError

    async def write(self, data: bytes) -> None:
        """Write all of it, in lines."""
        for start in range(0, len(data), 24_576):
            await self.write_text(base64.b64encode(data[start : start + 24_576]).decode() + "\n")

    async def read(self) -> bytes:
        """More of the output.

        Raises:
            OSError: it is not what the relay writes.
        """
        while "\n" not in self._rest:
            text = await self._texts.get()
            if text is None:
                return b""
            self._rest += text
            if len(self._rest) > LONGEST_LINE and "\n" not in self._rest:
                raise OSError("the relay wrote a line without an end")
        lines, _, self._rest = self._rest.rpartition("\n")
        try:
            return b"".join(base64.b64decode(line, validate=True) for line in lines.split())
        except (binascii.Error, ValueError):
            raise OSError("the relay wrote what is no base64") from None


class Pumped:
    """A remote process as a stream: made on the pool's loop, used from any."""

    def __init__(self, remote: Remote) -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        self.stream = SocketStream(ours)
        self.ended = threading.Event()
        self._socket = theirs
        self._remote = remote
        self._task = asyncio.get_running_loop().create_task(self._carry())

    async def _carry(self) -> None:
        ways = [asyncio.ensure_future(self._outward()), asyncio.ensure_future(self._inward())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            with contextlib.suppress(BaseException):
                await asyncio.wait_for(asyncio.shield(self._remote.kill()), END_SECONDS)
            await asyncio.gather(*ways, return_exceptions=True)
            self._socket.close()
            self.ended.set()

    async def _outward(self) -> None:
        loop = asyncio.get_running_loop()
        while data := await loop.sock_recv(self._socket, PIECE):
            await self._remote.write(data)

    async def _inward(self) -> None:
        loop = asyncio.get_running_loop()
        while data := await self._remote.read():
            await loop.sock_sendall(self._socket, data)

    async def end(self) -> None:
        """End the process, and wait until the provider has been told."""
        self.stream.kill()
        if not self._task.done():
            with contextlib.suppress(Exception):
                await asyncio.wait_for(asyncio.shield(self._task), END_SECONDS + 1)


class RemoteBackend:
    """A back-end over a provider's library. Subclasses connect, create a process, disconnect, and read errors."""

    name: str
    level: Level
    remedy: str
    """What a person does when a provider refuses."""
    slack = 15.0
    """Seconds that an answer may be under way beyond what the agent may take."""

    def __init__(self) -> None:
        self._open: dict[int, Pumped] = {}
        self._facts: dict[str, JSON] = {}

    async def connect(self, spec: SandboxSpec) -> None:
        """Load the library, find credentials, reach the provider.

        Raises:
            Unavailable: a part of that is missing.
        """
        raise NotImplementedError

    async def create(self, spec: SandboxSpec) -> Remote:
        """A fresh place with ``program.command`` running in it; leaves nothing behind when it fails or is cancelled."""
        raise NotImplementedError

    async def disconnect(self) -> None:
        """Let go of the provider; harmless when not connected."""
        raise NotImplementedError

    def facts(self) -> Mapping[str, JSON]:
        """More of what is worth recording of this place: the image, say."""
        return {}

    async def start(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """Connect, open one session and ask its agent what it runs; see ``Backend.start``.

        Raises:
            Unavailable: something is missing or refused; it says what, and what to do.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                await self.connect(spec)
                stream = await self._opened(spec)
                try:
                    said = await facts_of(stream, spec)
                finally:
                    await self.kill(stream)
        except BaseException as error:
            with contextlib.suppress(Exception):
                await self.close()
            if isinstance(error, Unavailable) or not isinstance(error, Exception):
                raise
            if isinstance(error, TimeoutError):
                raise Unavailable(f"{self.name}: no session within {START_SECONDS:g} s", self.remedy) from error
            raise Unavailable(f"{self.name}: {_shortly(error)}", self.remedy) from error
        return {"backend": self.name, "isolation": self.level, **said, **self.facts()}

    async def open(self, spec: SandboxSpec) -> Stream:
        """A fresh place and the stream to its agent; see ``Backend.open``.

        Raises:
            OSError: the provider gave none.
        """
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                return await self._opened(spec)
        except (OSError, Unavailable):
            raise
        except Exception as error:
            raise OSError(f"{self.name}: {_shortly(error)}") from error

    async def _opened(self, spec: SandboxSpec) -> Stream:
        remote = await self.create(spec)
        pumped = Pumped(remote)
        self._open[id(pumped.stream)] = pumped
        try:
            await pumped.stream.send(preamble())
        except BaseException:
            await self.kill(pumped.stream)
            raise
        return pumped.stream

    async def kill(self, stream: Stream) -> None:
        """End one session; see ``Backend.kill``."""
        pumped = self._open.pop(id(stream), None)
        if pumped is not None:
            await pumped.end()

    async def close(self) -> None:
        """End all sessions and let go of the provider."""
        held = list(self._open.values())
        self._open.clear()
        await asyncio.gather(*(pumped.end() for pumped in held), return_exceptions=True)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.disconnect(), END_SECONDS)

    def kill_now(self) -> None:
        """Tell the loop, if it still runs, to end all sessions, and give it half a second.

        A provider can be told only through its library; should nobody be left to do it, a session's agent ends when
        its connection does, and its place at the end of its lifetime.
        """
        held = list(self._open.values())
        for pumped in held:
            pumped.stream.kill()
        for pumped in held:
            if not pumped.ended.wait(0.5 / len(held)):
                break


def _shortly(error: BaseException) -> str:
    """An error of anybody's library in one line."""
    lines = str(error).strip().splitlines()
    text = next((line for line in lines if line.strip()), "")
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
