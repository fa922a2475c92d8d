"""One server of a pool: its control plane, how much it has to do, and whether it answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from mcpgym.control import EnvironmentInfo, Load
from mcpgym.control_client import HttpControl
from mcpgym.errors import ConfigurationError, McpgymError, ServerUnavailable

PROBE_SECONDS = 5.0
"""How long a server may take to say how much it has to do, before it counts as one that does not answer."""


@dataclass(eq=False)
class Member:
    """``load`` is what it said last; ``begun`` how many episodes were opened and not closed here since it was asked.

    ``up`` is whether it answered last; ``gone`` whether it never will again; ``missed`` how often in a row it was asked
    how much it has to do and did not answer.
    """

    name: str
    control: HttpControl
    load: Load = field(default_factory=lambda: Load(0, 1))
    begun: int = 0
    opening: int = 0
    up: bool = True
    gone: bool = False
    missed: int = 0

    @property
    def share(self) -> float:
        """How full it is: 0 for nothing to do, 1 at its cap."""
        return (self.load.live + self.begun + self.opening) / max(self.load.cap, 1)

    @property
    def takes_episodes(self) -> bool:
        """Whether episodes may be opened there."""
        return self.up and not self.gone and not self.load.draining

    async def look(self) -> None:
        """Ask how much it has to do; one that does not answer in time is down until it does."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                found = await self.control.load()
        except (McpgymError, TimeoutError):
            self.up = False
            self.missed += 1
        else:
            self.load, self.begun, self.up, self.missed = found, 0, True, 0

    @contextlib.asynccontextmanager
    async def asked(self) -> AsyncIterator[HttpControl]:
        """Its control plane; where that does not answer, it is down from then on."""
        try:
            yield self.control
        except ServerUnavailable:
            self.up = False
            raise


async def same_environments(members: list[Member]) -> None:
    """See that all that answer serve the same: scores of different tools or versions could not be averaged.

    Raises:
        ServerUnavailable: none answers.
        ConfigurationError: two differ; the message says which, and in what.
    """
    found = await asyncio.gather(*(member.control.environments() for member in members), return_exceptions=True)
    first: tuple[Member, dict[str, Any]] | None = None
    for member, served in zip(members, found, strict=True):
        if isinstance(served, ServerUnavailable):
            member.up = False
            continue
        if isinstance(served, BaseException):
            raise served
        known = {info.name: _identity(info) for info in served}
        if first is None:
            first = member, known
            continue
        other, theirs = first
        if known != theirs:
            odd = sorted(name for name in {*known, *theirs} if known.get(name) != theirs.get(name))
            raise ConfigurationError(
                f"{other.name} and {member.name} do not serve the same {', '.join(odd)} (version, tools or "
                "configuration): start them alike, or use those that are"
            )
    if first is None:
        errors = "; ".join(sorted({str(error) for error in found}))
        raise ServerUnavailable(f"none of the {len(members)} servers answers: {errors}")


def _identity(info: EnvironmentInfo) -> tuple[Any, ...]:
    return info.version, info.schema_hash, dict(info.config), dict(info.splits)
