"""One start of an agent product: a process in a session of its own, watched, bounded, and ended with all it started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from mcpgym_clients.agents.contract import Start, Workplace
from mcpgym_clients.agents.places import variables_of
from mcpgym_clients.agents.shielding import MARK, passed_on
from mcpgym_rl.failures import uninterrupted

KEEPER = Path(__file__).with_name("keeper.py")
MAX_OUTPUT = 16 * 2**20
"""Bytes that an agent may print in one start; it is ended beyond them."""
KEPT_OF_ERRORS = 4_000
"""Bytes of its standard error's end that are kept."""
LOOK_SECONDS = 0.25
"""How often its episode is looked at."""
END_SECONDS = 15.0
"""How long its keeper may take to end all of its processes."""
CLOSE_SECONDS = 1.0
"""How long its output is read after that, and how long asyncio may take to learn of its end."""
REAP_SECONDS = 0.005
"""How often it is asked whether it has."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a start ended: by itself, with ``code`` (negative for a signal), or at a ``limit`` (``time``, ``output``,
    ``over``: its episode was over long since), when ``code`` is None.

    ``left`` is how many processes it had left behind, which were ended. ``broken`` is why it did not start, or that its
    keeper was killed.
    """

    printed: bytes
    errors: str
    code: int | None
    limit: str | None
    left: int = 0
    broken: str | None = None


async def run(start: Start, place: Workplace, deadline: float | None, over: Callable[[], Awaitable[bool]]) -> Ended:
    """Run an agent to its end.

    Whatever happens, a cancellation included, nothing that it started runs when this returns.

    Args:
        start: the command, and what it is given.
        place: its private folders.
        deadline: the time (monotonic) at which it is ended; None for none.
        over: whether there is nothing left that it could do; asked again and again.

    Raises:
        OSError: no process can be made.
    """
    process = _Process(start, place)
    try:
        await process.begin()
        limit = await process.watch(deadline, over)
    finally:
        await uninterrupted(process.end(), None)
    return process.ended(limit)


class _Process:
    """A start under way."""

    def __init__(self, start: Start, place: Workplace) -> None:
        self._start, self._place = start, place
        self._mark = secrets.token_hex(16)
        self._process: asyncio.subprocess.Process | None = None
        self._report = -1
        self._reported = bytearray()
        self._gone = asyncio.Event()
        self._readers: list[asyncio.Task[None]] = []
        self._printed, self._errors = bytearray(), bytearray()
        self._size = 0
        self._too_much = asyncio.Event()
        self._told: dict[str, Any] = {}

    async def begin(self) -> None:
        """Start it."""
        stdin = self._place.root / "stdin"
        stdin.write_text(self._start.stdin, "utf-8", errors="backslashreplace")
        self._report, theirs = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(KEEPER), str(theirs), str(stdin)),
                *self._start.command,
                cwd=self._place.work,
                env=self._variables(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        os.set_blocking(self._report, False)
        asyncio.get_running_loop().add_reader(self._report, self._hear)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = [
            asyncio.create_task(self._read(self._process.stdout, self._keep)),
            asyncio.create_task(self._read(self._process.stderr, self._keep_end)),
        ]

    def _hear(self) -> None:
        """Take in its keeper's report. That it ends says that the keeper has: no other process holds its other end,
        while asyncio knows of the end of a process only once everybody has let go of its output."""
        with contextlib.suppress(BlockingIOError):
            if part := os.read(self._report, 65_536):
                self._reported += part[: 65_536 - len(self._reported)]
                return
            asyncio.get_running_loop().remove_reader(self._report)
            self._gone.set()

    def _variables(self) -> Mapping[str, str]:
        return {**passed_on(), **variables_of(self._place), **self._start.variables, MARK: self._mark}

    async def _read(self, stream: asyncio.StreamReader, keep: Callable[[bytes], None]) -> None:
        while part := await stream.read(65_536):
            self._size += len(part)
            keep(part)
            if self._size > MAX_OUTPUT:
                self._too_much.set()

    def _keep(self, part: bytes) -> None:
        self._printed += part[: MAX_OUTPUT - len(self._printed)]

    def _keep_end(self, part: bytes) -> None:
        self._errors = (self._errors + part)[-KEPT_OF_ERRORS:]

    async def watch(self, deadline: float | None, over: Callable[[], Awaitable[bool]]) -> str | None:
        """Wait for its end, or for a limit; which."""
        gone = asyncio.ensure_future(self._gone.wait())
        much = asyncio.ensure_future(self._too_much.wait())
        try:
            while True:
                left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, deadline - time.monotonic())
                await asyncio.wait({gone, much}, timeout=max(left, 0), return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    return None
                if much.done():
                    return "output"
                if deadline is not None and time.monotonic() >= deadline:
                    return "time"
                if await over():
                    return "over"
        finally:
            gone.cancel()
            much.cancel()

    async def end(self) -> None:
        """End everything; safe to call at any moment."""
        process = self._process
        if process is None:
            if self._report >= 0:
                os.close(self._report)
                await asyncio.to_thread(_sweep, self._mark)  # it was stopped while it was made, and may run
            return
        assert process.stdin is not None
        process.stdin.close()  # by which its keeper knows
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._gone.wait()
        except TimeoutError:  # the agent stopped its keeper, or it is swamped
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await self._gone.wait()
        os.close(self._report)
        self._told = _told(bytes(self._reported))
        if not {"code", "error"} & self._told.keys():
            await asyncio.to_thread(_sweep, self._mark)
        _, late = await asyncio.wait(self._readers, timeout=CLOSE_SECONDS)
        for reader in late:
            reader.cancel()
        for _ in range(int(CLOSE_SECONDS / REAP_SECONDS)):
            if process.returncode is not None:  # closed before that, asyncio would warn of a process it did not reap
                break
            await asyncio.sleep(REAP_SECONDS)
        process._transport.close()  # type: ignore[attr-defined]  # no other way to let go of a pipe that one still holds

    def ended(self, limit: str | None) -> Ended:
        """How it ended."""
        broken = self._told.get("error")
        if broken is None and "code" not in self._told:
            broken = "the agent's keeper was killed, and with it whatever could be found of the agent"
        code, left = self._told.get("code"), self._told.get("left")
        errors = bytes(self._errors).decode("utf-8", "replace").strip()
        return Ended(
            bytes(self._printed),
            errors,
            code if isinstance(code, int) and limit is None else None,
            limit,
            left if isinstance(left, int) and code is not None else 0,
            None if broken is None or limit is not None else str(broken),
        )


def _told(reported: bytes) -> dict[str, Any]:
    try:
        told = json.loads(reported)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _sweep(mark: str) -> None:
    """End every process that bears the mark, until there is none: what is left of an agent that killed its keeper."""
    until = time.monotonic() + END_SECONDS
    while time.monotonic() < until:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        if not found:
            return
