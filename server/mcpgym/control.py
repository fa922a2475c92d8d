"""The control plane's interface: what trainers and evaluators use, the same in process and over HTTP.

A policy never gets near it. :class:`LocalControl` is the in-process lane; ``mcpgym.control_plane`` serves the same over
HTTP and ``mcpgym.control_client`` speaks it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from mcpgym.calls import CallRecord, CallResult
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes, listings
from mcpgym.errors import ConfigurationError, EpisodeError
from mcpgym.messages import Message, message_fault
from mcpgym.rewards import Score

if TYPE_CHECKING:
    from mcpgym.receipts import Signer


@dataclass(frozen=True, slots=True)
class EnvironmentInfo:
    """What a server says of one environment it serves. ``splits`` maps each to its number of tasks.

    ``reproducible`` is whether its episodes can be replayed byte for byte.
    """

    name: str
    version: str
    description: str
    schema_hash: str
    tools: Sequence[Mapping[str, Any]]
    splits: Mapping[str, int]
    config: Mapping[str, Any]
    rewards: Mapping[str, float]
    max_turns: int | None
    reproducible: bool = True


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """One task without what is hidden."""

    id: str
    split: str
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class OpenedEpisode:
    """What opening an episode tells its harness. ``url`` is where a player's MCP client connects; None in process.

    ``conditions`` are facts of the machine it runs on, where its environment says any; no policy sees them.
    """

    token: str
    url: str | None
    environment: str
    environment_version: str
    task: str
    split: str
    seed: int
    config: Mapping[str, Any]
    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]]
    schema_hash: str
    max_turns: int | None
    conditions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a batched step. Calls of one episode are answered in their order."""

    token: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None


@dataclass(frozen=True, slots=True)
class EpisodeStatus:
    """Where an episode stands. ``ended`` says why it is closed, if it is; ``failure`` how its environment broke."""

    done: bool
    turns: int
    stop_reason: str | None
    ended: str | None = None
    failure: str | None = None
    lost: bool = False
    """Whether it ended because the process that held it is gone: its task may be opened again."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much a server has to do: ``live`` episodes of ``cap`` at most; ``draining`` once it begins no more."""

    live: int
    cap: int
    draining: bool = False


class ControlPlane(Protocol):
    """What a harness may ask of a server, with the errors of :mod:`mcpgym.errors` in every lane.

    Over HTTP every method also raises ``ServerUnavailable`` when the server does not answer.
    """

    async def environments(self) -> list[EnvironmentInfo]:
        """Every environment that is served.

        Raises:
            EpisodeError: an environment cannot count its tasks.
        """
        ...

    async def tasks(
        self,
        environment: str,
        split: str,
        *,
        offset: int = 0,
        limit: int = 100,
        config: Mapping[str, Any] | None = None,
    ) -> list[TaskInfo]:
        """Tasks ``offset`` to ``offset + limit`` of a split; fewer where it ends.

        Raises:
            UnknownNameError: there is no such environment, split or configuration field.
            ConfigurationError: the offset is negative, the limit not in 0 to 10000, or a value does not fit its field.
            EpisodeError: the environment cannot make its tasks.
        """
        ...

    async def open(
        self,
        environment: str,
        *,
        task: str | None = None,
        split: str | None = None,
        index: int | None = None,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
    ) -> OpenedEpisode:
        """Open an episode of one task; with ``max_turns``, one that ends after so many calls at the latest.

        Raises:
            UnknownNameError: there is no such environment, task, split or configuration field.
            ConfigurationError: a task and a split are both given, or neither; the split ends before the index; a value
                does not fit its field; ``max_turns`` is below 1.
            TooManyEpisodes: the server's cap is reached.
            ServerDraining: the server was told to stop, and begins no other.
            CannotBegin: the environment lacks what it needs to begin any (over HTTP a plain ConfigurationError).
            EpisodeError: the environment could not begin it.
        """
        ...

    async def calls(self, token: str) -> list[CallRecord]:
        """Every call that the episode has answered, in order, whoever sent it over whatever lane.

        Raises:
            UnknownEpisodeError: no episode ever had this token.
            EpisodeEnded: it was closed or has expired.
        """
        ...

    async def step(self, calls: Sequence[Call]) -> list[CallResult]:
        """Answer many calls, of one or many episodes; the results are in the order of the calls.

        Calls of one episode are answered in their order, calls of different episodes side by side. A call that names
        no live episode is an error result, not an exception.
        """
        ...

    async def respond(self, token: str, messages: Sequence[Message]) -> list[Message] | None:
        """What the environment says as the user after ``messages``; None ends the rollout.

        Raises:
            ConfigurationError: a message has no role or no text.
            UnknownEpisodeError: no episode ever had this token.
            EpisodeEnded: it was closed or has expired.
            EpisodeError: the environment failed.
        """
        ...

    async def status(self, token: str) -> EpisodeStatus:
        """Where the episode stands; also of one that has ended.

        Raises:
            UnknownEpisodeError: no episode ever had this token.
        """
        ...

    async def score(
        self, token: str, messages: Sequence[Message] | None = None, *, claims: Mapping[str, str] | None = None
    ) -> Score:
        """The score, with the transcript where there is one; signed where the server signs.

        ``claims`` is what a harness says of itself (``policy``, ``harness``): the receipt repeats it as a claim.

        Raises:
            ConfigurationError: a message has no role or no text; the claims are not a few short texts.
            UnknownEpisodeError: no episode ever had this token.
            EpisodeEnded: it was closed or has expired.
            EpisodeError: its environment broke; it has no score.
            RewardError: a reward failed, or gave a value outside its range.
        """
        ...

    async def close(self, token: str) -> None:
        """End the episode.

        Raises:
            UnknownEpisodeError: no episode ever had this token. (Ending one that has ended does nothing.)
        """
        ...

    async def load(self) -> Load:
        """How much the server has to do."""
        ...

    async def aclose(self) -> None:
        """Let go of the server (and, in process, of everything it holds)."""
        ...


class LocalControl:
    """The control plane in this process: no HTTP, no serialisation, the same behaviour.

    Args:
        episodes: what it controls.
        url: the base of players' URLs (``http://127.0.0.1:8000``), where a listener serves these episodes.
        signer: signs every score; None for no receipts.
    """

    def __init__(self, episodes: Episodes, url: str | None = None, signer: Signer | None = None) -> None:
        self.episodes = episodes
        self.url = url
        self.signer = signer

    async def environments(self) -> list[EnvironmentInfo]:
        """Every environment that is served."""
        return [describe(environment) for environment in self.episodes.environments.values()]

    async def tasks(
        self,
        environment: str,
        split: str,
        *,
        offset: int = 0,
        limit: int = 100,
        config: Mapping[str, Any] | None = None,
    ) -> list[TaskInfo]:
        """Tasks ``offset`` to ``offset + limit`` of a split; fewer where it ends."""
        made = self.episodes.environment(environment, config)
        if offset < 0 or not 0 <= limit <= 10_000:
            raise ConfigurationError(f"offset {offset} must not be negative, and limit {limit} lies in 0 to 10000")
        return [TaskInfo(row.id, row.split, list(row.messages)) for row in made.tasks_at(split, offset, limit)]

    async def open(
        self,
        environment: str,
        *,
        task: str | None = None,
        split: str | None = None,
        index: int | None = None,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
    ) -> OpenedEpisode:
        """Open an episode of one task."""
        episode = await self.episodes.open(
            environment, task=task, split=split, index=index, seed=seed, config=config, max_turns=max_turns
        )
        made = episode.environment
        return OpenedEpisode(
            token=episode.token,
            url=None if self.url is None else f"{self.url}/e/{episode.token}/mcp",
            environment=made.name,
            environment_version=made.version,
            task=episode.task.id,
            split=episode.task.split,
            seed=seed,
            config=made.config.model_dump(mode="json"),
            messages=list(episode.messages),
            tools=listings(made),
            schema_hash=made.schema_hash,
            max_turns=made.max_turns,
            conditions=episode.conditions,
        )

    async def calls(self, token: str) -> list[CallRecord]:
        """Every call that the episode has answered, in order."""
        return list(self.episodes.get(token).calls)

    async def step(self, calls: Sequence[Call]) -> list[CallResult]:
        """Answer many calls: in order within an episode, side by side between episodes."""
        results: list[CallResult | None] = [None] * len(calls)
        waiting: dict[str, list[int]] = {}  # what cannot be answered at once, by episode
        for place, call in enumerate(calls):
            if place % 256 == 255:
                await asyncio.sleep(0)  # a large batch does not hold up the loop
            if call.token in waiting:
                waiting[call.token].append(place)
                continue
            try:
                episode = self.episodes.get(call.token)
            except EpisodeError as error:
                results[place] = CallResult(str(error), is_error=True, done=True)
                continue
            episode.by_control = True
            answer = episode.call_now(call.name, call.arguments, call.key)
            if answer is None:
                waiting[call.token] = [place]
            results[place] = answer
        if waiting:
            await self._step_beside(calls, waiting, results)
        return cast(list[CallResult], results)

    async def _step_beside(
        self, calls: Sequence[Call], waiting: Mapping[str, Sequence[int]], results: list[CallResult | None]
    ) -> None:
        async def in_order(token: str, places: Sequence[int]) -> None:
            for place in places:
                call = calls[place]
                try:
                    results[place] = await self.episodes.get(token).call(call.name, call.arguments, call.key)
                except EpisodeError as error:  # it ended meanwhile
                    results[place] = CallResult(str(error), is_error=True, done=True)

        rows = [asyncio.ensure_future(in_order(token, places)) for token, places in waiting.items()]
        try:
            await asyncio.gather(*rows)
        finally:
            for row in rows:
                row.cancel()

    async def respond(self, token: str, messages: Sequence[Message]) -> list[Message] | None:
        """What the environment says as the user after ``messages``; None ends the rollout."""
        return await self.episodes.get(token).respond(checked_messages(messages))

    async def status(self, token: str) -> EpisodeStatus:
        """Where the episode stands; also of one that has ended."""
        if (stone := self.episodes.tombstone(token)) is not None:
            return EpisodeStatus(done=True, turns=0, stop_reason=None, ended=stone.reason, lost=stone.lost)
        episode = self.episodes.get(token)
        return EpisodeStatus(episode.done, episode.turns, episode.stop_reason, episode.ended, episode.failure)

    async def score(
        self, token: str, messages: Sequence[Message] | None = None, *, claims: Mapping[str, str] | None = None
    ) -> Score:
        """The score, with the transcript where there is one; signed where there is a signer."""
        if claims is not None:
            from mcpgym.receipts import checked_claims

            claims = checked_claims(claims)
        checked = None if messages is None else checked_messages(messages)
        episode = self.episodes.get(token)
        made = await episode.score(checked)
        self.episodes.counters.scored += 1
        if self.signer is None:
            return made
        return replace(made, receipt=self.signer.receipt(episode, made, checked, claims))

    async def close(self, token: str) -> None:
        """End the episode."""
        await self.episodes.close(token)

    async def load(self) -> Load:
        """How many episodes are live here, and may be."""
        return Load(len(self.episodes), self.episodes.limits.live, self.episodes.draining)

    async def aclose(self) -> None:
        """End every episode and shut the environments down."""
        await self.episodes.aclose()


def describe(environment: Environment[Any, Any, Any]) -> EnvironmentInfo:
    """What a server says of ``environment``."""
    return EnvironmentInfo(
        name=environment.name,
        version=environment.version,
        description=environment.description,
        schema_hash=environment.schema_hash,
        tools=listings(environment),
        splits={split: environment.size(split) for split in environment.splits},
        config=environment.config.model_dump(mode="json"),
        rewards={name: reward.weight for name, reward in environment.rewards.items()},
        max_turns=environment.max_turns,
        reproducible=environment.reproducible,
    )


def checked_messages(messages: Sequence[Message]) -> Sequence[Message]:
    """``messages``, if rewards may rely on each one's role and text; calls stay as malformed as a policy wrote them.

    Raises:
        ConfigurationError: one has no known role or no text; the text says which.
    """
    for place, message in enumerate(messages):
        if (fault := message_fault(message)) is not None:
            raise ConfigurationError(f"messages[{place}] {fault}")
    return messages
