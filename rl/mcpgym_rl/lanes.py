"""Lanes: the ways a rollout reaches its episode. One behaviour, whether in process or over MCP."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from mcpgym.calls import CallRecord, CallResult
from mcpgym.control import Call, ControlPlane, EpisodeStatus, OpenedEpisode
from mcpgym.errors import ConfigurationError, EpisodeError
from mcpgym.messages import Message
from mcpgym.rewards import Score
from mcpgym.schema import schema_hash
from mcpgym_rl.failures import uninterrupted


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

    async def calls(self) -> list[CallRecord]:
        """Every call that the episode has answered, whoever sent it."""
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


class Connection(Protocol):
    """A player's connection to one episode, over MCP."""

    async def tools(self) -> list[dict[str, Any]]:
        """The tools as the server lists them."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallResult:
        """One tool call."""
        ...

    async def aclose(self) -> None:
        """Disconnect."""
        ...


class Connector(Protocol):
    """What connects to episodes: the thin client, or the official one."""

    async def connect(self, url: str) -> Connection:
        """Connect to the episode at ``url``."""
        ...

    async def aclose(self) -> None:
        """Close what connections share."""
        ...


class ControlEpisode:
    """An episode whose calls go through the control plane: the in-process lane, and batched control over HTTP."""

    def __init__(self, control: ControlPlane, opened: OpenedEpisode, claims: Mapping[str, str] | None = None) -> None:
        self.control = control
        self.opened = opened
        self.claims = claims

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallResult:
        """Answer one call."""
        (result,) = await self.control.step([Call(self.opened.token, name, arguments)])
        return result

    async def respond(self, messages: Sequence[Message]) -> list[Message] | None:
        """What the environment says as the user; None ends the rollout."""
        return await self.control.respond(self.opened.token, messages)

    async def calls(self) -> list[CallRecord]:
        """Every call that the episode has answered."""
        return await self.control.calls(self.opened.token)

    async def status(self) -> EpisodeStatus:
        """Where the episode stands."""
        return await self.control.status(self.opened.token)

    async def score(self, messages: Sequence[Message]) -> Score:
        """The score, the transcript handed over."""
        if self.claims is None:
            return await self.control.score(self.opened.token, messages)
        return await self.control.score(self.opened.token, messages, claims=self.claims)

    async def aclose(self) -> None:
        """Close the episode."""
        await self.control.close(self.opened.token)


class ControlLane:
    """Episodes over a control plane alone (in process: the trainer's default).

    ``claims`` is what its user says of itself when episodes are scored (``policy``, ``harness``), for their receipts.
    """

    claims: Mapping[str, str] | None = None

    def __init__(self, control: ControlPlane) -> None:
        self.control = control

    async def open(self, environment: str, **task: Any) -> EpisodeLane:
        """Open an episode."""
        return ControlEpisode(self.control, await self.control.open(environment, **task), self.claims)

    async def check(self) -> None:
        """Ask whether the server is there."""
        with contextlib.suppress(EpisodeError):  # the answer of a server that lives: it knows no such episode
            await self.control.status("0" * 32)

    async def aclose(self) -> None:
        """Let go of the control plane."""
        await self.control.aclose()


class McpEpisode(ControlEpisode):
    """An episode whose calls go over MCP, as any player's do; only its harness uses the control plane."""

    def __init__(
        self,
        control: ControlPlane,
        opened: OpenedEpisode,
        connection: Connection,
        claims: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(control, opened, claims)
        self._connection = connection

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallResult:
        """Answer one call."""
        return await self._connection.call(name, arguments)

    async def aclose(self) -> None:
        """Disconnect, and close the episode."""
        try:
            await self._connection.aclose()
        finally:
            await super().aclose()


class McpLane(ControlLane):
    """Episodes opened over a control plane and played over real MCP at their URL.

    Before an environment's tools are used, they are listed over MCP and compared with what the control plane states;
    one comparison per server and stated schema hash is enough, for a server that changes its tools states another.

    Args:
        control: the control plane of a server, which must state URLs for its players.
        client: ``thin`` (protocol 2026-07-28, one pool of connections for all episodes) or ``official`` (the SDK's
            client, unmodified, one for each episode).
        mode: the official client's: ``auto``, ``legacy`` (2025-11-25 and before) or ``2026-07-28``.
        timeout: seconds one request may take; longer than the slowest tool.

    Raises:
        ConfigurationError: there is no such client or mode.
    """

    def __init__(
        self,
        control: ControlPlane,
        *,
        client: Literal["thin", "official"] = "thin",
        mode: str = "auto",
        timeout: float = 120.0,
    ) -> None:
        super().__init__(control)
        if client == "thin":
            if mode not in ("auto", "2026-07-28"):
                raise ConfigurationError(
                    f"the thin client speaks 2026-07-28 alone, not {mode!r}; take client='official'"
                )
            from mcpgym_rl.mcp_thin import ThinClient

            self._connector: Connector = ThinClient(timeout)
        elif client == "official":
            if mode not in ("auto", "legacy", "2026-07-28"):
                raise ConfigurationError(f"there is no MCP mode {mode!r}; there is: auto, legacy, 2026-07-28")
            from mcpgym_rl.mcp_official import OfficialClient

            self._connector = OfficialClient(mode, timeout)
        else:
            raise ConfigurationError(f"there is no MCP client {client!r}; there is: thin, official")
        self._agreed: set[tuple[str, str, str]] = set()

    async def open(self, environment: str, **task: Any) -> EpisodeLane:
        """Open an episode and connect to it.

        Raises:
            ConfigurationError: the control plane states no URL.
            ToolsDiffer: the tools over MCP are not those it states.
            ServerUnavailable: the server did not answer.
        """
        opened = await self.control.open(environment, **task)
        connection: Connection | None = None
        try:
            if opened.url is None:
                raise ConfigurationError("this control plane states no URL for players; serve it, or use ControlLane")
            connection = await self._connector.connect(opened.url)
            await self._agree(opened, connection)
        except BaseException:
            with contextlib.suppress(Exception):
                await uninterrupted(_given_up(connection, self.control, opened.token))
            raise
        return McpEpisode(self.control, opened, connection, self.claims)

    async def _agree(self, opened: OpenedEpisode, connection: Connection) -> None:
        server = (opened.url or "").partition("/e/")[0]
        key = (server, opened.environment, opened.schema_hash)
        if key in self._agreed:
            return
        tools = await connection.tools()
        try:
            seen = schema_hash(tools)
        except KeyError as error:
            raise ToolsDiffer(f"{opened.environment}: a tool listed over MCP lacks its {error}") from None
        if seen != opened.schema_hash:
            raise ToolsDiffer(
                f"{opened.environment}: the tools listed over MCP ({', '.join(str(tool['name']) for tool in tools)}; "
                f"hash {seen[:12]}) are not those the control plane states (hash {opened.schema_hash[:12]}); "
                "scores would not be comparable. Is a proxy or an older server between?"
            )
        self._agreed.add(key)

    async def aclose(self) -> None:
        """Close the connections, and let go of the control plane."""
        try:
            await self._connector.aclose()
        finally:
            await super().aclose()


class ToolsDiffer(ConfigurationError):
    """A player is shown other tools than its harness was told."""


async def _given_up(connection: Connection | None, control: ControlPlane, token: str) -> None:
    """Undo an opening that failed half-way."""
    try:
        if connection is not None:
            await connection.aclose()
    finally:
        await control.close(token)
