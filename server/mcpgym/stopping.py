"""Ending a program on a signal: in order if that is possible, and by a deadline whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import Any

ORDERLY_SECONDS = 15.0
"""From the first signal to the end of the process, at the latest."""
LEFTOVER_SECONDS = 2.0
"""What threads get to finish once all else has ended."""

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name))


class Stopping:
    """Runs one coroutine as the program's whole work, and ends it on SIGINT, SIGTERM or SIGHUP.

    The first signal makes :meth:`wait` return. The second, or a deadline after the first, ends the process at once:
    a watching thread sees to it even when the event loop is stuck. ``last_rites`` are called before such an end.

    Args:
        patience: seconds that SIGTERM leaves beyond the deadline, for work that is to come to its end first.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self._patience = patience
        self.last_rites: list[Callable[[], None]] = []
        self._signal: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked: asyncio.Event | None = None
        self._ear, self._mouth = socket.socketpair()

    async def wait(self) -> None:
        """Return when the program has been asked to stop."""
        assert self._asked is not None
        await self._asked.wait()

    @property
    def is_patient(self) -> bool:
        """Whether it was SIGTERM that asked: who presses Ctrl-C does not want to wait."""
        return self._signal == getattr(signal, "SIGTERM", None)

    @property
    def exit_code(self) -> int:
        """130 after SIGINT, else 0."""
        return 130 if self._signal == signal.SIGINT else 0

    def run(self, work: Callable[[Stopping], Awaitable[None]]) -> int:
        """Run ``work(self)`` in a new event loop (uvloop's where there is one) and return the exit code."""
        threads_before = set(threading.enumerate())
        watch = threading.Thread(target=self._watch, name="mcpgym-deadline", daemon=True)
        watch.start()
        before = {number: signal.signal(number, self._on_signal) for number in SIGNALS if not _is_ignored(number)}
        try:
            self._run_loop(work, threads_before | {watch})
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._mouth.close()
            watch.join(1.0)
            self._ear.close()
        return self.exit_code

    def _run_loop(self, work: Callable[[Stopping], Awaitable[None]], not_ours: set[threading.Thread]) -> None:
        runner = asyncio.Runner(loop_factory=_loop_factory())
        try:
            self._loop = runner.get_loop()
            runner.run(self._main(work))
        finally:
            deadline = time.monotonic() + LEFTOVER_SECONDS
            if self._signal is not None:
                self._mouth.send(b"l")
            runner.close()
        for thread in threading.enumerate():
            if thread not in not_ours and not thread.daemon and thread is not threading.current_thread():
                thread.join(max(deadline - time.monotonic(), 0))
                if thread.is_alive():
                    self._leave("a tool is still running in a thread, which nothing can stop")

    async def _main(self, work: Callable[[Stopping], Awaitable[None]]) -> None:
        self._asked = asyncio.Event()
        if self._signal is not None:
            self._asked.set()
        await work(self)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:
            self._leave("stopped at once")
        self._signal = number
        with contextlib.suppress(OSError):
            self._mouth.send(b"s")
        if self._loop is not None and self._asked is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed already
                self._loop.call_soon_threadsafe(self._asked.set)

    def _watch(self) -> None:
        """Wait for the deadlines that the main thread sets over the socket pair: ``s`` a signal, ``l`` leftovers."""
        deadline: float | None = None
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            if not select.select([self._ear], [], [], left)[0]:
                self._leave("it did not stop in time")
            match self._ear.recv(1):
                case b"s":
                    deadline = time.monotonic() + ORDERLY_SECONDS + (self._patience if self.is_patient else 0.0)
                case b"l":
                    deadline = time.monotonic() + LEFTOVER_SECONDS
                case _:
                    return

    def _leave(self, why: str) -> None:
        """End the process now, whatever runs in it."""
        for rite in self.last_rites:
            with contextlib.suppress(Exception):
                rite()
        with contextlib.suppress(Exception):
            os.write(2, f"mcpgym: {why}\n".encode())
        os._exit(self.exit_code)


def _is_ignored(number: int) -> bool:
    """Whether whoever started us wants this signal ignored (``nohup``); SIGINT and SIGTERM are always heard."""
    return number not in (signal.SIGINT, signal.SIGTERM) and signal.getsignal(number) is signal.SIG_IGN


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    try:
        import uvloop
    except ImportError:
        return None
    made: Any = uvloop.new_event_loop
    return made  # type: ignore[no-any-return]
