"""The process in a virtual environment, seen from here: started, asked from any thread or event loop, ended."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

from mcpgym.errors import InfrastructureError
from mcpgym.isolated.wire import decode, decode_error, encode

logger = logging.getLogger(__name__)

PONG_SECONDS = 5.0
"""How long one that ran over a request's limit has to show that it is alive at all."""
LOOK_SECONDS = 1.0
"""How often it is looked whether a request is over its limit."""
END_SECONDS = 6.0
"""How long it has to end by itself."""
GRACE_SECONDS = 8.0
"""And how long where it is we who have ended."""
ALLOWED_SECONDS = 60.0
"""A request's limit where none is said."""
CHUNK = 1024 * 1024
LONGEST = 256 * 1024 * 1024
"""Bytes of one answer; who sends more is ended, before this machine has no memory left."""

_alive: weakref.WeakSet[Child] = weakref.WeakSet()


class Child:
    """A running process. Requests may be sent from any thread; one that ends fails all that are open.

    Args:
        python: the interpreter of its virtual environment.
        what: what messages call it.
        held: a descriptor that it shall have open while it lives (a lock).
        errors: where its standard error goes; ours by default.
    """

    def __init__(self, python: Path, what: str, held: int | None = None, errors: IO[bytes] | None = None) -> None:
        self.what = what
        self.why: str | None = None
        """How it ended; None while it has not."""
        self._waiting: dict[int, tuple[Future[Any], float]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._posting = threading.Lock()
        self._late: SimpleQueue[bytes | memoryview | None] = SimpleQueue()
        self._left = 0
        self._ending = False
        self._said = ""
        self._socket, theirs = socket.socketpair()
        life, self._life = os.pipe()
        words = [str(python), "-I", "-m", "mcpgym.isolated.child", str(theirs.fileno()), str(life), str(GRACE_SECONDS)]
        passed = [theirs.fileno(), life, *([] if held is None else [held])]
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=errors or _standard_error(),
                stderr=errors or _standard_error(),
                env=_environment(python),
                pass_fds=passed,
                start_new_session=True,
            )
        except OSError as error:
            self._socket.close()
            os.close(self._life)
            raise InfrastructureError(f"{what} cannot be started: {error.strerror or error}") from error
        finally:
            theirs.close()
            os.close(life)
        self.pid = self._process.pid
        _alive.add(self)
        self._reader = threading.Thread(target=self._read, name="mcpgym answers", daemon=True)
        self._reader.start()
        threading.Thread(target=self._write, name="mcpgym requests", daemon=True).start()

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self.why is None and not self._ending

    def begin(self, ask: str, given: Mapping[str, Any], seconds: float = ALLOWED_SECONDS) -> tuple[int, Future[Any]]:
        """Send a request: its number, and the future of its result.

        Args:
            ask: what is asked.
            given: with what, as JSON.
            seconds: after which the process must show that it is alive; one that does not is ended.

        Raises:
            TypeError, ValueError, RecursionError: that is no JSON.
        """
        number: int = next(self._numbers)
        line = encode({"id": number, "ask": ask, "with": given})
        future: Future[Any] = Future()
        with self._lock:
            if alive := self.alive:
                self._waiting[number] = future, time.monotonic() + seconds
        if alive:
            self._post(line)
        else:
            future.set_exception(self._gone())
        return number, future

    def ask_now(self, ask: str, given: Mapping[str, Any] | None = None, seconds: float = ALLOWED_SECONDS) -> Any:
        """The result of a request; the thread waits for it.

        Raises:
            InfrastructureError: the process has ended, or does so now.
            Exception: what was asked failed; see :mod:`mcpgym.isolated.wire`.
        """
        return self.begin(ask, given or {}, seconds)[1].result()

    async def ask(self, ask: str, given: Mapping[str, Any], seconds: float = ALLOWED_SECONDS) -> Any:
        """The same from an event loop. One that is cancelled is cancelled there too, and waits until that is so."""
        number, future = self.begin(ask, given, seconds)
        answer = asyncio.wrap_future(future)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            self._post(encode({"cancel": number}))
            with contextlib.suppress(Exception):  # the state is in use until then
                await asyncio.wait({answer})
            if answer.done() and not answer.cancelled():
                answer.exception()
            raise

    def end(self) -> None:
        """End it in order; whoever calls this waits until it is gone."""
        with self._lock:
            self._ending = True
        self._late.put(None)
        if threading.current_thread() is not self._reader:
            self._reader.join(END_SECONDS + 2.0)

    def kill(self, why: str) -> None:
        """End it at once."""
        self._said = self._said or why
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)

    def _post(self, line: bytes) -> None:
        """Send a line, without waiting: what the process does not take now, a thread sends it later."""
        with self._posting:
            sent = 0
            if not self._left:
                with contextlib.suppress(OSError):  # it would wait, or the process is gone
                    sent = self._socket.send(line, socket.MSG_DONTWAIT)
            if sent < len(line):
                self._left += 1
                self._late.put(memoryview(line)[sent:])

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (line := self._late.get()) is not None:
                self._socket.sendall(line)
                with self._posting:
                    self._left -= 1
            self._socket.shutdown(socket.SHUT_WR)

    def _read(self) -> None:
        """Hand out answers until there is an end of them; this thread outlives the process."""
        buffer = bytearray()
        pinged = 0.0
        try:
            while True:
                if not select.select([self._socket], [], [], LOOK_SECONDS)[0]:
                    pinged = self._look(pinged)
                    continue
                part = self._socket.recv(CHUNK)
                if not part:
                    break
                pinged = 0.0
                start = len(buffer)
                buffer += part
                if buffer.find(b"\n", start) < 0:
                    if len(buffer) > LONGEST:
                        raise ValueError(f"over {LONGEST:,} bytes")
                    continue
                *lines, rest = bytes(buffer).split(b"\n")
                buffer = bytearray(rest)
                for line in lines:
                    self._hand_out(decode(line))
        except Exception as error:  # of whatever kind: nobody may wait for it for ever
            self.kill(f"answered what is no answer ({type(error).__name__}: {str(error)[:100]})")
        self._bury()

    def _hand_out(self, message: Mapping[str, Any]) -> None:
        number, error = message["id"], message.get("error")
        failure = None if error is None else decode_error(error)
        result = message["result"] if failure is None else None  # what is no answer raises here, where all still wait
        with self._lock:
            waiting = self._waiting.pop(number, None)
        if waiting is None:
            return
        if failure is not None:
            waiting[0].set_exception(failure)
        else:
            waiting[0].set_result(result)

    def _look(self, pinged: float) -> float:
        """Whether a request is over its limit; one that does not even answer that it is alive is ended."""
        now = time.monotonic()
        if pinged:
            if now - pinged > PONG_SECONDS:
                self.kill("did not answer any more and was ended")
            return pinged
        with self._lock:
            late = [number for number, (_, limit) in self._waiting.items() if limit < now]
            for number in late:  # alive, it may go on for as long again
                self._waiting[number] = self._waiting[number][0], now + ALLOWED_SECONDS
        if not late:
            return 0.0
        self.begin("ping", {}, ALLOWED_SECONDS * 2)
        return now

    def _bury(self) -> None:
        try:
            code = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill("did not end by itself")
            code = self._process.wait()
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)  # what it has started and left
        with self._lock:
            self.why = self._said or _how(code)
            waiting, self._waiting = self._waiting, {}
        if not self._ending:
            logger.warning("%s: %s; its episodes have no score, and new ones start it again", self.what, self.why)
        for future, _ in waiting.values():
            future.set_exception(self._gone())
        self._late.put(None)
        self._socket.close()
        os.close(self._life)
        _alive.discard(self)

    def _gone(self) -> InfrastructureError:
        return InfrastructureError(f"{self.what} {self.why or 'was ended'}")


def _standard_error() -> int:
    """Our standard error, whatever ``sys.stderr`` is now; nothing, where there is none."""
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2


def _environment(python: Path) -> dict[str, str]:
    """Ours, as activating the virtual environment would change it, and without the control plane's secret."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MCPGYM_CONTROL_"))}
    path = os.pathsep.join(filter(None, [str(python.parent), kept.get("PATH", "")]))
    return {**kept, "VIRTUAL_ENV": str(python.parent.parent), "PATH": path}


def _how(code: int) -> str:
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return f"ended with exit code {code}"


@atexit.register
def _end_all() -> None:
    """Nothing of ours outlives us; Python ends these threads before the processes have seen it."""
    for child in list(_alive):
        with contextlib.suppress(Exception):
            child.end()
    sys.stderr.flush() if sys.stderr else None
