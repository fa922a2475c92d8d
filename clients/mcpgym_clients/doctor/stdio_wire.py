"""MCP over a command's standard input and output: one client is one process, which is always ended."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mcpgym_clients.doctor.processes import Stopwatch
from mcpgym_clients.doctor.wire import (
    CLIENT,
    HANDSHAKE_VERSIONS,
    MAX_ANSWER,
    MODERN_VERSION,
    Answer,
    Era,
    brief,
    encode,
    message,
    of,
)

KEPT = 4000
"""Bytes of standard error, and lines of noise in characters, that are kept."""
END_SECONDS = 5.0
"""How long a process may take to end once its input is closed, before it is ended by force."""
LAST_WORDS_SECONDS = 0.3
"""How long the last words of a process that has closed its pipes are waited for."""


class StdioConnection:
    """See :class:`~mcpgym_clients.doctor.wire.Connection`.

    Args:
        command: the program and its arguments.
        environment: its environment variables, all of them.
        era: how to speak.
        timeout: seconds an answer may take.
        version: the revision to ask for in ``initialize``.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        era: Era,
        timeout: float,
        version: str = HANDSHAKE_VERSIONS[0],
    ) -> None:
        self.era = era
        self.version = MODERN_VERSION if era is Era.MODERN else version
        self.opening = Answer(problem="not opened yet")
        self.noise: list[str] = []
        """Lines on its standard output that are no protocol."""
        self.errors = b""
        """The end of its standard error."""
        self.asked: list[str] = []
        self._command, self._environment, self._timeout = list(command), dict(environment), timeout
        self._ids = itertools.count(1)
        self._waiting: dict[Any, asyncio.Future[Any]] = {}
        self._anything: asyncio.Future[Any] | None = None
        self._over = False
        self._readers: list[asyncio.Task[None]] = []
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> StdioConnection:
        """Start the process, and say nothing.

        Raises:
            OSError: it cannot be started.
        """
        self.process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
            limit=MAX_ANSWER,
            start_new_session=sys.platform != "win32",
        )
        self._readers = [asyncio.create_task(self._read_answers()), asyncio.create_task(self._read_errors())]
        return self

    async def open(self) -> StdioConnection:
        """Start the process and shake hands, or discover; ``opening`` says how it went."""
        await self.start()
        patience = max(self._timeout, 20.0)  # the first answer includes the program's start
        if self.era is Era.MODERN:
            self.opening = await self.request("server/discover", patience=patience)
            return self
        params = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": CLIENT}
        self.opening = await self.request("initialize", params, patience=patience)
        if self.opening.result is not None:
            self.version = str(self.opening.result.get("protocolVersion", self.version))
            await self.notify("notifications/initialized", {})
        return self

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        patience: float | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask, and wait for the answer."""
        number = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            return await self._ask(encode(message(self.era, number, method, params, meta)), future, patience)
        finally:
            self._waiting.pop(number, None)

    async def raw(self, body: bytes, *, patience: float | None = None, tool: str | None = None) -> Answer:
        """Write ``body`` as one line; the answer is whatever comes next that answers nothing else."""
        self._anything = asyncio.get_running_loop().create_future()
        try:
            return await self._ask(body, self._anything, patience)
        finally:
            self._anything = None

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        with contextlib.suppress(OSError):
            await self.write(encode({"jsonrpc": "2.0", "method": method, "params": dict(params)}))

    async def write(self, line: bytes) -> None:
        """Write one line.

        Raises:
            OSError: the process has closed its input.
        """
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + b"\n")
            await self.process.stdin.drain()
        except RuntimeError as error:  # uvloop's word for a pipe that has closed
            raise BrokenPipeError(str(error)) from None

    def close_input(self) -> None:
        """Close its standard input: what tells a stdio server to end."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    async def ended(self, seconds: float) -> bool:
        """Whether the process ends within ``seconds``."""
        assert self.process is not None
        deadline = time.monotonic() + seconds
        while self.process.returncode is None and time.monotonic() < deadline:  # noqa: ASYNC110 (wait() waits for the pipes too)
            await asyncio.sleep(0.01)
        return self.process.returncode is not None

    async def close(self) -> None:
        """Close its input and wait for its end; one that stays is ended by force."""
        self.close_input()
        if self.process is not None and not await self.ended(END_SECONDS):
            self._signal(signal.SIGTERM)
            await self.ended(2.0)
        await self.abandon()

    async def abandon(self) -> None:
        """End the process, and what it started, by force."""
        self._signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
        for task in self._readers:
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        self.close_input()
        if self.process is not None:
            await self.ended(2.0)
            transport = getattr(self.process, "_transport", None)  # else it warns of pipes that are still open
            if transport is not None:
                transport.close()

    def _signal(self, number: int) -> None:
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self.process.send_signal(number)
            else:
                os.killpg(self.process.pid, number)  # it leads a group of its own, with all that it started

    async def _ask(self, line: bytes, future: asyncio.Future[Any], patience: float | None) -> Answer:
        patience = self._timeout if patience is None else patience
        started = time.monotonic()

        def problem(words: str) -> Answer:
            return Answer(problem=words, seconds=time.monotonic() - started)

        if self._over and not future.done():
            future.set_exception(EOFError())
        assert self.process is not None
        watch = Stopwatch([self.process.pid])
        answering = asyncio.ensure_future(self._exchange(line, future))
        try:
            while not answering.done() and (left := patience - watch.seconds) > 0:
                await asyncio.wait({answering}, timeout=left + 0.01)
                if not answering.done():
                    watch.look()
            if not answering.done():
                return problem(f"no answer within {patience:g} s{watch.aside()}")
            found = answering.result()
        except (OSError, EOFError):
            await asyncio.wait(self._readers, timeout=LAST_WORDS_SECONDS)
            tail = self.errors.decode("utf-8", "replace").strip().splitlines()
            said = f"; its last words: {brief(tail[-1])}" if tail else ""
            said += f"; it printed {self.noise[0]!r}, which is no protocol" if self.noise else ""
            return problem(f"the process closed its output or ended{said}")
        finally:
            answering.cancel()
        return of(found, None, {}, time.monotonic() - started)

    async def _exchange(self, line: bytes, future: asyncio.Future[Any]) -> Any:
        await self.write(line)
        return await future

    async def _read_answers(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        try:
            while line := await self.process.stdout.readline():
                self._take(line)
        except ValueError:
            self.noise.append(f"a line of more than {MAX_ANSWER} bytes")
        finally:
            self._over = True
            for future in [*self._waiting.values(), *([self._anything] if self._anything else [])]:
                if not future.done():
                    future.set_exception(EOFError())

    def _take(self, line: bytes) -> None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or "jsonrpc" not in found:
            if len(self.noise) < 20:
                self.noise.append(brief(line.decode("utf-8", "replace"), 200))
            return
        if "method" in found:
            if "id" in found:
                self.asked.append(str(found["method"]))
            return
        number = found.get("id")
        future = self._waiting.get(number) if isinstance(number, (int, str)) else None
        future = self._anything if future is None else future
        if future is not None and not future.done():
            future.set_result(found)

    async def _read_errors(self) -> None:
        assert self.process is not None
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(65536):
            self.errors = (self.errors + chunk)[-KEPT:]
