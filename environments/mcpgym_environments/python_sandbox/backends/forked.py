"""What the two back-ends of this machine share: a fork server beside the server, asked for a session at a time."""

from __future__ import annotations

import array
import asyncio
import contextlib
import copy
import dataclasses
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcpgym_environments.python_sandbox.backends.greeting import facts_of
from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Stream, Unavailable
from mcpgym_environments.python_sandbox.sessions.streams import SocketStream

LAUNCH = Path(__file__).parent.parent / "jail" / "launch.py"
READY = b"+"
START_SECONDS = 60.0
"""How long a fork server may take to import its packages, on however busy a machine."""
OPEN_SECONDS = 30.0
"""How long one session may take to open."""
LAST_SECONDS = 2.0
"""How long the processes may take to be gone once they are killed."""


class ForkedBackend:
    """Sessions forked from one process that has imported everything; see ``jail/zygote.py``.

    Args:
        name: what users write.
        level: what it keeps in.
    """

    def __init__(self, name: str, level: Level) -> None:
        self.name = name
        self.level: Level = level
        self._launched: _Launched | None = None

    def another(self) -> ForkedBackend:
        """The same, not started: takes over when this one is old, or its fork server is gone."""
        made = copy.copy(self)
        made._launched = None
        return made

    async def start(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """Start the fork server and open one session, to see that it can be done.

        Raises:
            Unavailable: it cannot run here, with what would let it.
        """
        if not sys.platform.startswith("linux"):
            raise Unavailable(
                f"the {self.name} sandbox needs Linux, and this is {sys.platform}",
                'Use backend="docker", or backend="wasm" with: pip install "mcpgym[wasm]"',
            )
        await self.close()
        try:
            launched = await asyncio.to_thread(_Launched, self.name, spec)
        except OSError as error:
            raise Unavailable(f"the {self.name} sandbox does not start: {error}", "") from None
        self._launched = launched
        try:
            facts = await launched.await_ready()
            await self._try(spec)
        except OSError as error:
            await self.close()
            raise Unavailable(f"the {self.name} sandbox does not start: {error}", "") from None
        except BaseException:
            await self.close()
            raise
        return {"backend": self.name, "isolation": self.level, **facts}

    async def _try(self, spec: SandboxSpec) -> None:
        """Open one session and have it run something: only then its worker is confined too.

        Raises:
            OSError: it does not.
        """
        stream = await self.open(spec)
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                header = {"op": "run", "n": 1, "seconds": OPEN_SECONDS, "cpu_seconds": OPEN_SECONDS}
                await stream.send(frames.encode(header, b"6 * 7"))
                json_length, blob_length = frames.lengths(await stream.receive(frames.HEAD_BYTES))
                answer = frames.header(await stream.receive(json_length))
                output = await stream.receive(blob_length)
            if answer.get("status") != "ok" or output.strip() != b"42":
                raise OSError(f"its first call ended {answer.get('status')} ({answer.get('why')})")
        except (EOFError, TimeoutError, frames.FrameError) as error:
            raise OSError(f"its first session does not answer ({type(error).__name__}: {error})") from None
        finally:
            stream.kill()

    async def open(self, spec: SandboxSpec) -> Stream:
        """A fresh session, confined, whose agent has been told all but its seed: who opens it later waits for nothing.

        Raises:
            Unavailable: the fork server is gone, or the kernel no longer allows sessions.
            OSError: this session did not open.
        """
        launched = self._launched
        if launched is None:
            raise Unavailable(f"the {self.name} sandbox has not been started", "")
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                launched.ask(theirs)
            ours.setblocking(False)
            async with asyncio.timeout(OPEN_SECONDS):
                init = await _first_word(ours)
        except BaseException as error:
            ours.close()
            if isinstance(error, TimeoutError):
                raise OSError(f"no session opened in {OPEN_SECONDS:g} s") from None
            raise
        stream = SocketStream(ours, _Init(init).kill, _process(init))
        try:
            stream.greeting = await facts_of(stream, dataclasses.replace(spec, seed=0))
        except BaseException as error:
            stream.kill()
            if isinstance(error, Unavailable):
                raise OSError(error.reason) from None
            raise
        return stream

    async def kill(self, stream: Stream) -> None:
        """End one session; its processes are dead a few milliseconds later."""
        stream.kill()

    async def close(self) -> None:
        """End the fork server, and with it every session."""
        launched, self._launched = self._launched, None
        if launched is not None:
            launched.leave()
            try:
                await asyncio.to_thread(launched.end)
            except RuntimeError:  # the interpreter exits, and starts no more threads
                launched.end()

    def kill_now(self) -> None:
        """The same, without an event loop."""
        launched, self._launched = self._launched, None
        if launched is not None:
            launched.end()


class _Init:
    """The init of one session, held by a pidfd: it can be killed without its number having gone to another process."""

    def __init__(self, pidfd: int) -> None:
        self._pidfd: int | None = pidfd
        self._ours = os.getpid()
        self._lock = threading.Lock()

    def kill(self) -> None:
        """Kill it, with which the kernel kills the rest of the session, and let go of the pidfd.

        In a fork of the process that made it, nothing: there the garbage collector may come by.
        """
        if os.getpid() != self._ours:
            return
        with self._lock:
            pidfd, self._pidfd = self._pidfd, None
        if pidfd is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)

    def __del__(self) -> None:
        self.kill()


class _Launched:
    """One fork server and the socket to it. Made and ended in a worker thread: both may wait."""

    def __init__(self, tier: str, spec: SandboxSpec) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        order = {
            "tier": "alone" if tier == "landlock" else tier,
            "packages": list(spec.packages),
            "folders": [str(Path(folder).absolute()) for folder in sys.path if folder],
            "limits": asdict(spec.limits),
            "first": random.SystemRandom().randrange(2**31),  # so that two servers' sessions share no user
        }
        try:
            this = os.pidfd_open(os.getpid())
        except OSError as error:
            raise Unavailable(
                f"this kernel ({os.uname().release}) has no pidfd_open ({error.strerror})", "Use Linux 5.6 or later."
            ) from None
        try:
            self._process = subprocess.Popen(
                [_interpreter(), "-I", "-S", "-B", str(LAUNCH), str(theirs.fileno()), str(this)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={"LC_ALL": "C.UTF-8", "TMPDIR": tempfile.gettempdir(), **_libraries()},
                cwd="/",
                pass_fds=(theirs.fileno(), this),
                start_new_session=True,  # Ctrl-C in the server's terminal is the server's to act upon
            )
        finally:
            os.close(this)
            theirs.close()
        self._control.send(json.dumps(order).encode())
        self._control.setblocking(False)
        self._is_ready = False

    async def await_ready(self) -> dict[str, Any]:
        """What the fork server says of itself. No thread waits for it: an interpreter that exits would wait for that.

        Raises:
            Unavailable: it cannot run here, and why.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                told = json.loads(await asyncio.get_running_loop().sock_recv(self._control, 1 << 16) or b"{}")
        except (TimeoutError, ConnectionError, ValueError) as error:
            raise Unavailable(f"the sandbox's fork server did not answer ({type(error).__name__})", "") from None
        if "refused" in told:
            raise Unavailable(told["refused"], told["remedy"])
        if "ready" not in told:
            why = told.get("fault") or await asyncio.to_thread(self._last_words)
            raise Unavailable(f"the sandbox's fork server did not start: {why}", "")
        assert self._process.stderr is not None
        self._process.stderr.close()
        self._is_ready = True
        return dict(told["ready"])

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            text = self._process.communicate(timeout=LAST_SECONDS)[1]
            return text.decode("utf-8", "replace").strip()[-1000:] or f"exit {self._process.returncode}"
        return "it says nothing"

    def ask(self, stream: socket.socket) -> None:
        """Ask for a session that has this end of its stream.

        Raises:
            Unavailable: the fork server is gone.
        """
        try:
            socket.send_fds(self._control, [b"open"], [stream.fileno()])
        except BlockingIOError:
            raise OSError("the sandbox's fork server takes no more requests") from None
        except OSError as error:
            raise Unavailable(f"the sandbox's fork server is gone ({error.strerror})", "Start it again.") from None

    def leave(self) -> None:
        """Close the socket to it: it ends, and every session with it."""
        if not self._is_ready:
            self._process.terminate()  # it may be making files, and looks at nothing until it has
        self._control.close()

    def end(self) -> None:
        """Make it end, and wait until it has."""
        self.leave()
        process = self._process
        if process.stderr is not None:
            process.stderr.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LAST_SECONDS)
            return
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LAST_SECONDS)


def _interpreter() -> str:
    """The interpreter that this one is, outside of any virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def _libraries() -> dict[str, str]:
    """Where this interpreter's libraries lie, if it had to be told."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


def _process(pidfd: int) -> int | None:
    with contextlib.suppress(OSError, ValueError), Path(f"/proc/self/fdinfo/{pidfd}").open(encoding="ascii") as file:
        return next((int(line[4:]) for line in file if line.startswith("Pid:")), None)
    return None


async def _first_word(ours: socket.socket) -> int:
    """The pidfd with which a session says that it is ready.

    Raises:
        Unavailable: the kernel refuses sessions.
        OSError: the session failed.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            data, ancillary, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
            break
        except (BlockingIOError, InterruptedError):
            ready = loop.create_future()
            loop.add_reader(ours, _set, ready)
            try:
                await ready
            finally:
                loop.remove_reader(ours)
    descriptors = array.array("i")
    for _, _, held in ancillary:
        descriptors.frombytes(held[: len(held) // 4 * 4])
    if data == READY and len(descriptors) == 1:
        return descriptors[0]
    for descriptor in descriptors:
        os.close(descriptor)
    if not data:
        raise OSError("the session ended before it was ready")
    told = json.loads(data + ours.recv(1 << 16))
    if "refused" in told:
        raise Unavailable(told["refused"], told["remedy"])
    raise OSError(f"the session did not open: {told.get('fault')}")


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
