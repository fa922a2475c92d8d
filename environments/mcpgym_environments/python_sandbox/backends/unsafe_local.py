"""No boundary: the agent as a plain process of this machine, held by resource limits.

**Its code can read what this user can read.** It is for machines without any of the real back-ends, for code that is
trusted, and for tests; nobody gets it who does not name it. That code which goes wrong does no harm is seen to as far
as the kernel has the means, which is no promise that hostile code cannot:

- With Landlock (most Linux systems of 2022 and later) it can write to and remove nothing outside of its session's
  folder, reach no TCP port (since Linux 6.7) and signal nobody else's processes (since 6.12).
- If the server is root, the code is not: each session is a throw-away user of its own, without privileges. If the
  interpreter or the package lies where only root may look, the session keeps root's right to read, and no other.
- Where root cannot become another user (no ``CAP_SETUID``, or not Linux), nothing starts, unless
  ``MCPGYM_SANDBOX_AS_ROOT=yes`` says that the code may do what root may.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcpgym_environments.python_sandbox.backends.settings import setting
from mcpgym_environments.python_sandbox.jail import emptying, frames, users
from mcpgym_environments.python_sandbox.jail import start as agent
from mcpgym_environments.python_sandbox.jail.refusal import Refused
from mcpgym_environments.python_sandbox.jail.table import end_tree, end_user
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
    user: int
    """Its throw-away user; 0 for none."""
    stream: SocketStream


class UnsafeLocal:
    """Sessions as plain processes.

    Args:
        python: the interpreter that runs the code; the one that runs this by default.
        as_root: ``yes`` lets root's sessions be root where they cannot be anybody else; the environment variable
            ``MCPGYM_SANDBOX_AS_ROOT`` by default.
    """

    name: str = "unsafe-local"
    level: Level = "none"

    def __init__(self, python: str | None = None, as_root: str | None = None) -> None:
        self._python = python or sys.executable
        self._as_root = setting("as_root", as_root, "no")
        self._users: tuple[int, int] | None = None
        self._agents: dict[int, _Agent] = {}
        self._lock = threading.Lock()

    async def start(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """Open a session, ask it for its facts, end it.

        Raises:
            Unavailable: this is no POSIX system, its root cannot become another user, or the interpreter lacks a
                package.
        """
        if os.name != "posix":
            raise Unavailable(
                "unsafe-local needs a POSIX system (it forks)", "Use backend = docker, or the extra mcpgym[wasm]."
            )
        self._users = self._throw_away()
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

    def _throw_away(self) -> tuple[int, int] | None:
        """The first and the number of user ids for sessions; None for this process's own.

        Raises:
            Unavailable: this is root, and there are none, and nobody said that root's will do.
        """
        if os.geteuid() != 0:
            return None
        try:
            if sys.platform == "linux":
                return users.throw_away()
            why = f"on {sys.platform} its sessions would be root"
        except Refused as refused:
            why = refused.reason
        if self._as_root == "yes":
            return None
        raise Unavailable(
            f"unsafe-local does not run code as root: {why}",
            "Run the server as an ordinary user; or, if the code may do whatever root may, set"
            " MCPGYM_SANDBOX_AS_ROOT=yes.",
        )

    async def open(self, spec: SandboxSpec) -> Stream:
        """Start an agent in a folder of its own.

        Raises:
            OSError: no process, folder or socket could be made.
        """
        folder = Path(tempfile.mkdtemp(prefix="mcpgym-sandbox-"))
        user, as_user = self._user_for(folder)
        ours, theirs = socket.socketpair()
        command = [
            self._python, "-I", agent.__file__,
            "--work", str(folder / "work"),
            "--scratch", str(folder / "tmp"),
            "--packages", ",".join(spec.packages),
            "--remove", str(folder),
            "--guard", *as_user,
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
            emptying.remove(str(folder))
            raise
        finally:
            theirs.close()
        stream = SocketStream(ours, None, process.pid)  # its init ends everything as soon as the socket is shut
        with self._lock:
            self._agents[id(stream)] = _Agent(process, folder, user, stream)
        return stream

    def _user_for(self, folder: Path) -> tuple[int, list[str]]:
        """The throw-away user of a new session (0 for none), and the options that make its agent be that user."""
        if self._users is None:
            return 0, []
        first, count = self._users
        user = first + random.SystemRandom().randrange(count)
        folder.chmod(0o711)
        needed = (self._python, sys.prefix, sys.base_prefix, agent.__file__, str(folder))
        return user, ["--user", str(user), *([] if all(map(_open_to_all, needed)) else ["--reads"])]

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
        if one.user:
            end_user(one.user)
    emptying.remove(str(one.folder))


def _open_to_all(path: str) -> bool:
    """Whether any user may pass all folders above a file, as it is written and where its links lead."""
    folders = {*Path(path).absolute().parents, *Path(path).resolve().parents}
    try:
        return all(folder.stat().st_mode & 0o005 == 0o005 for folder in folders)
    except OSError:
        return False
