"""Lanes: the ways a rollout reaches its episode. One behaviour, whether in process or over MCP."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mcpgym.control import Call, ControlPlane, EpisodeStatus, OpenedEpisode
from mcpgym.episode import CallResult
from mcpgym.errors import EpisodeError
from mcpgym.messages import Message
from mcpgym.rewards import Score


class EpisodeLane(Protocol):
    """One open episode, seen from its harness: the policy's calls on one side, the control plane on the other."""

    opened: OpenedEpisode

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallResult:
        """Send one tool call as the policy's client would.

        Raises:
            ServerUnavailable: the server did not answer.
        """
        ...

    async def respond(self, messages: Sequence[Message]) -> list[Message] | None:
        """What the environment says as the user; None ends the rollout."""
        ...

    async def status(self) -> EpisodeStatus:
        """Where the episode stands, and why it ended if it did."""
        ...

    async def score(self, messages: Sequence[Message]) -> Score:
        """The score, the transcript handed over."""
        ...

    async def aclose(self) -> None:
        """Close the episode and the connection."""
        ...


class Lane(Protocol):
    """Where episodes are opened."""

    async def open(
        self,
        environment: str,
        *,
        task: str | None = None,
        split: str | None = None,
        index: int | None = None,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
    ) -> EpisodeLane:
        """Open an episode and connect to it."""
        ...

    async def check(self) -> None:
        """Ask whether the server is there.

        Raises:
            ServerUnavailable: it is not.
        """
        ...

    async def aclose(self) -> None:
        """Let go of the server."""
        ...


class ControlEpisode:
    """An episode whose calls go through the control plane: the in-process lane, and batched control over HTTP."""

    def __init__(self, control: ControlPlane, opened: OpenedEpisode) -> None:
        self.control = control
        self.opened = opened

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallResult:
        """Answer one call."""
        (result,) = await self.control.step([Call(self.opened.token, name, arguments)])
        return result

    async def respond(self, messages: Sequence[Message]) -> list[Message] | None:
        """What the environment says as the user; None ends the rollout."""
        return await self.control.respond(self.opened.token, messages)

    async def status(self) -> EpisodeStatus:
        """Where the episode stands."""
        return await self.control.status(self.opened.token)

    async def score(self, messages: Sequence[Message]) -> Score:
        """The score, the transcript handed over."""
        return await self.control.score(self.opened.token, messages)

    async def aclose(self) -> None:
        """Close the episode."""
        await self.control.close(self.opened.token)


class ControlLane:
    """Episodes over a control plane alone (in process: the trainer's default)."""

    def __init__(self, control: ControlPlane) -> None:
        self.control = control

    async def open(self, environment: str, **task: Any) -> EpisodeLane:
        """Open an episode."""
        return ControlEpisode(self.control, await self.control.open(environment, **task))

    async def check(self) -> None:
        """Ask whether the server is there."""
        with contextlib.suppress(EpisodeError):  # the answer of a server that lives: it knows no such episode
            await self.control.status("0" * 32)

    async def aclose(self) -> None:
        """Let go of the control plane."""
        await self.control.aclose()
