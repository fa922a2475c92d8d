"""Worker processes: each serves episodes on unix sockets of its own, in a folder that only this user can open.

A worker reads one line of JSON from its standard input, its :class:`Orders`, and ends when that input does: so none
outlives the front, however that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from mcpgym.control_client import HttpControl
from mcpgym.errors import ConfigurationError, McpgymError
from mcpgym.fleet.members import Member

logger = logging.getLogger(__name__)

START_SECONDS = 120.0
"""How long a worker may take until it answers: environments are loaded and built meanwhile."""
LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is told: who it is, where it listens, how many episodes it may have, and what to serve.

    ``secret`` is of its own control plane, which the front alone asks. ``what`` is for whoever made the command.
    """

    name: str
    player_socket: str
    control_socket: str
    secret: str = field(repr=False)
    public_url: str
    cap: int
    what: Mapping[str, Any]


def read_orders() -> Orders:
    """The orders of this process; from then on it is told to stop when whoever gave them is gone."""
    orders = Orders(**json.loads(sys.stdin.readline()))

    def watch() -> None:
        with contextlib.suppress(OSError, ValueError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, name="mcpgym-front", daemon=True).start()
    return orders


@dataclass(eq=False)
class Worker:
    """A worker process and its place in the fleet: ``slot`` is which of them it is, ``name`` is never used twice."""

    name: str
    slot: int
    process: asyncio.subprocess.Process
    player_socket: str
    member: Member
    _ended: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    async def start(cls, command: Sequence[str], slot: int, orders: Orders) -> Worker:
        """A worker that answers.

        Raises:
            ConfigurationError: it ended before, or took too long; what it said itself is on standard error.
        """
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.PIPE, start_new_session=sys.platform != "win32"
        )
        control = HttpControl(f"unix:{orders.control_socket}", orders.secret)
        worker = cls(orders.name, slot, process, orders.player_socket, Member(orders.name, control))
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(asdict(orders)).encode() + b"\n")
            async with asyncio.timeout(START_SECONDS):
                await worker._answers(control)
        except TimeoutError:
            await worker.kill()
            raise ConfigurationError(f"a worker did not answer within {START_SECONDS:g} s") from None
        except BaseException:
            await worker.kill()
            raise
        return worker

    async def _answers(self, control: HttpControl) -> None:
        while True:
            if self.process.returncode is not None:
                raise ConfigurationError(
                    f"a worker ended while it started (exit code {self.process.returncode}); what it said is above"
                )
            with contextlib.suppress(McpgymError):
                self.member.load = await control.load()
                return
            await asyncio.sleep(LOOK_SECONDS)

    def tell(self, number: int) -> None:
        """Send it a signal."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def settled(self) -> None:
        """It has ended, and all that follows from it has been done."""
        self._ended.set()

    async def has_ended(self, within: float) -> bool:
        """Whether it is :meth:`settled`, or is within so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._ended.wait()
        return self._ended.is_set()

    async def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()
        await self.member.control.aclose()
