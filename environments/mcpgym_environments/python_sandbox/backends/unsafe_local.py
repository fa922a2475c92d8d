"""No boundary: the agent as a plain process of this machine, held by resource limits only.

Its code can read what this user can read, and reach the network. It is for machines without any of the real
back-ends, for code that is trusted, and for tests; nobody gets it who does not name it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.jail import start as agent
from mcpgym_environments.python_sandbox.jail.processes import end_tree
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Stream, Unavailable
from mcpgym_environments.python_sandbox.sessions.streams import SocketStream

START_SECONDS = 30.0
"""How long the first agent may take to say hello (it imports the packages)."""
END_SECONDS = 1.0
"""How long an agent may take to end by itself, before it is killed with all that it started."""


@dataclass(slots=True)
class _Agent:
    process: subprocess.Popen[bytes]
    folder: Path
    stream: SocketStream


class UnsafeLocal:
    """Sessions as plain processes.

    Args:
        python: the interpreter that runs the code; the one that runs this by default.
    """

    name: str = "unsafe-local"
    level: Level = "none"

    def __init__(self, python: str | None = None) -> None:
        self._python = python or sys.executable
        self._agents: dict[int, _Agent] = {}
        self._lock = threading.Lock()

    async def start(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """Open a session, ask it for its facts, end it.

        Raises:
            Unavailable: this is no POSIX system, or the interpreter lacks a package.
        """
        if os.name != "posix":
            raise Unavailable(
                "unsafe-local needs a POSIX system (it forks)", "Use backend = docker, or the extra mcpgym[wasm]."
            )
        stream = await self.open(spec)
        try:
            await stream.send(frames.encode({"op": "hello", "n": 1, "spec": spec.as_json()}))
            async with asyncio.timeout(START_SECONDS):
                json_length, blob_length = frames.lengths(await stream.receive(frames.HEAD_BYTES))
                answer = frames.header(await stream.receive(json_length))
                await stream.receive(blob_length)
        except (OSError, EOFError, frames.FrameError) as error:
            raise Unavailable(
                f"the agent of unsafe-local did not start under {self._python}: {error or 'it ended'}",
                "Run that interpreter by hand, or name another.",
            ) from None
        finally:
            await self.kill(stream)
        if answer.get("status") != "ok":
            raise Unavailable(f"{answer.get('why')}", "pip install 'mcpgym[sandbox]', or configure fewer packages.")
        return {
            "backend": self.name,
            "isolation": self.level,
            "python": answer.get("python"),
            "packages": answer.get("packages", {}),
        }

    async def open(self, spec: SandboxSpec) -> Stream:
        """Start an agent in a folder of its own.

        Raises:
            OSError: no process, folder or socket could be made.
        """
        folder = Path(tempfile.mkdtemp(prefix="mcpgym-sandbox-"))
        ours, theirs = socket.socketpair()
        command = [
            self._python, "-I", agent.__file__,
            "--work", str(folder / "work"),
            "--scratch", str(folder / "tmp"),
            "--packages", ",".join(spec.packages),
            "--remove", str(folder),
        ]  # fmt: skip
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - takes a millisecond, and ends in its own time
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=str(folder),
                start_new_session=True,
                env={"PATH": os.defpath},
            )
        except OSError:
            ours.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            theirs.close()
        stream = SocketStream(ours, None, process.pid)  # its init ends everything as soon as the socket is shut
        with self._lock:
            self._agents[id(stream)] = _Agent(process, folder, stream)
        return stream

    async def kill(self, stream: Stream) -> None:
        """End a session and everything it started, and remove its folder."""
        with self._lock:
            one = self._agents.pop(id(stream), None)
        if one is not None:
            one.stream.kill()
            await asyncio.to_thread(_end, one, END_SECONDS)

    async def close(self) -> None:
        """End all sessions."""
        await asyncio.to_thread(self._end_all, END_SECONDS)

    def kill_now(self) -> None:
        """End all sessions at once."""
        self._end_all(0.1)

    def _end_all(self, seconds: float) -> None:
        with self._lock:
            agents = list(self._agents.values())
            self._agents.clear()
        for one in agents:
            one.stream.kill()
        for one in agents:
            _end(one, seconds)


def _end(one: _Agent, seconds: float) -> None:
    try:
        one.process.wait(seconds)
    except subprocess.TimeoutExpired:
        end_tree(one.process.pid)
        with contextlib.suppress(OSError):
            os.killpg(one.process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            one.process.wait(END_SECONDS)
    shutil.rmtree(one.folder, ignore_errors=True)
