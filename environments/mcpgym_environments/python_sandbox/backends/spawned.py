"""What the back-ends have in common that start a process for each session, with the stream on its standard input.

The process gets one end of a pair of sockets, so that no bytes pass through this process but frames. When its socket is
shut, the agent at the other end ends by itself; what does not is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from mcpgym_environments.python_sandbox.backends.greeting import facts_of
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Stream, Unavailable
from mcpgym_environments.python_sandbox.sessions.streams import SocketStream

END_SECONDS = 2.0
"""How long a process that was killed may take to be gone."""


@dataclass(slots=True)
class Spawned:
    """One session's process."""

    process: subprocess.Popen[bytes]
    stream: SocketStream
    name: str
    """What the session is called where its process started it (a container's name); empty where it has no name."""


class SpawnedBackend:
    """A back-end that starts a process per session. Subclasses prepare, say the command and clear up."""

    name: str
    level: Level
    both_ways = False
    """Whether the process writes to its standard output; else it uses the one socket for both directions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[int, Spawned] = {}
        self._telling: IO[bytes] | None = None

    async def prepare(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """See that everything is there; gives more facts of this place.

        Raises:
            Unavailable: something is missing.
        """
        raise NotImplementedError

    def command(self, spec: SandboxSpec, name: str) -> list[str]:
        """The words that start a session."""
        raise NotImplementedError

    def remedy(self, said: str) -> str:
        """What a person does when the command failed and said this."""
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        """The environment variables of the command."""
        return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}

    def user(self) -> int | None:
        """The user that the command runs as; None for this process's own."""
        return None

    def named(self) -> str:
        """A name for a new session; empty where it needs none."""
        return ""

    def preamble(self) -> bytes:
        """What is written to the process before any frame."""
        return b""

    async def release(self, one: Spawned) -> None:
        """Undo what the command made beyond its process."""

    def release_now(self, sessions: Sequence[Spawned]) -> None:
        """The same for all at once, without waiting."""

    async def clear(self) -> None:
        """Undo what ``prepare`` made."""

    # ------------------------------------------------------------------ the interface

    async def start(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """Prepare, open one session and ask its agent what it runs; see ``Backend.start``.

        Raises:
            Unavailable: something is missing, or the command failed; it says what, and what to do.
        """
        await self.close()
        try:
            more = await self.prepare(spec)
            with tempfile.TemporaryFile() as told:
                self._telling = told
                try:
                    stream = await self.open(spec)
                    try:
                        said = await facts_of(stream, spec)
                    finally:
                        await self.kill(stream)
                except (Unavailable, OSError) as error:
                    told.seek(0)
                    words = told.read(4096).decode("utf-8", "replace").strip()
                    if not words:
                        raise
                    last = " / ".join(words.splitlines()[-3:])[-600:]
                    raise Unavailable(f"the {self.name} sandbox does not start: {last}", self.remedy(words)) from error
                finally:
                    self._telling = None
        except BaseException as error:
            await self.close()
            if isinstance(error, OSError):
                raise Unavailable(f"the {self.name} sandbox does not start: {error}", self.remedy(str(error))) from None
            raise
        return {"backend": self.name, "isolation": self.level, **said, **more}

    async def open(self, spec: SandboxSpec) -> Stream:
        """Start a session's process.

        Raises:
            OSError: it could not be started.
        """
        name = self.named()
        command = self.command(spec, name)
        ours, theirs = socket.socketpair()
        try:
            user = self.user()
            nobody: list[int] | None = None if user is None else []
            process = subprocess.Popen(  # noqa: ASYNC220 - takes a millisecond or two, and ends in its own time
                command,
                stdin=theirs.fileno(),
                stdout=theirs.fileno() if self.both_ways else subprocess.DEVNULL,
                stderr=self._telling if self._telling is not None else subprocess.DEVNULL,
                cwd="/",
                env=self.environment(),
                start_new_session=True,  # Ctrl-C in the server's terminal is the server's to act upon
                user=user,
                group=user,
                extra_groups=nobody,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        stream = SocketStream(ours, None, process.pid)
        with self._lock:
            self._sessions[id(stream)] = Spawned(process, stream, name)
        if data := self.preamble():
            try:
                await stream.send(data)
            except BaseException:
                await self.kill(stream)
                raise
        return stream

    async def kill(self, stream: Stream) -> None:
        """End a session, and reap its process; see ``Backend.kill``."""
        with self._lock:
            one = self._sessions.pop(id(stream), None)
        if one is not None:
            await self._end(one)

    async def _end(self, one: Spawned) -> None:
        one.stream.kill()
        killed(one)
        with contextlib.suppress(Exception):
            await self.release(one)
        await asyncio.to_thread(gone, one)

    async def close(self) -> None:
        """End every session, and undo what ``start`` made."""
        with self._lock:
            held = list(self._sessions.values())
            self._sessions.clear()
        await asyncio.gather(*(self._end(one) for one in held), return_exceptions=True)
        await self.clear()

    def kill_now(self) -> None:
        """End every session at once; see ``Backend.kill_now``."""
        with self._lock:
            held = list(self._sessions.values())
            self._sessions.clear()
        for one in held:
            one.stream.kill()
            killed(one)
        if held:
            self.release_now(held)


def killed(one: Spawned) -> None:
    """Kill the process and what else is in its group; harmless when it is gone."""
    if one.process.poll() is None:
        with contextlib.suppress(OSError):
            os.killpg(one.process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            one.process.kill()


def gone(one: Spawned) -> None:
    """Wait until the process has been reaped, or has had time enough."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        one.process.wait(END_SECONDS)
