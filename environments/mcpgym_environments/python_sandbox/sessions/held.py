"""What a pool holds: starts of back-ends, the streams that they gave, and counts of both."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from mcpgym_environments.python_sandbox.sessions.backend import JSON, Backend, Stream

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 10.0
"""How long ending one thing may take before it is left to itself."""
CLOSED = "the pool of sandbox sessions was closed"


@dataclass(eq=False, slots=True)
class Generation:
    """One start of a back-end, and how many of its sessions there were and are."""

    backend: Backend
    facts: Mapping[str, JSON]
    opened: int = 0
    live: int = 0
    retired: bool = False


@dataclass(eq=False, slots=True)
class Held:
    """One session's stream, and whose it is.

    ``on_sacrifice`` is told when the memory guard ends it, and its size; ``on_end`` when the pool ends it, and why.
    """

    stream: Stream
    generation: Generation
    on_sacrifice: Callable[[str, int], None]
    on_end: Callable[[str], None] | None = None
    gone: bool = False

    @property
    def process(self) -> int | None:
        """Its first process on this machine."""
        return self.stream.process

    def sacrifice(self, why: str, held: int) -> None:
        """End it for want of memory; it held so many bytes."""
        self.on_sacrifice(why, held)


@dataclass(slots=True)
class Counts:
    """What a pool has done. ``cold`` of the sessions were opened while somebody waited for them."""

    opened: int = 0
    cold: int = 0
    failed: int = 0
    ended: int = 0
    starts: int = 0
    sacrificed: int = 0


async def quietly(work: Awaitable[object], what: str) -> None:
    """Do what must not hang and whose failure nobody can mend."""
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await work
    except Exception as error:
        logger.warning("%s: %s", what, error or type(error).__name__)
