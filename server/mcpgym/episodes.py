"""All live episodes of one server: opened by task, found by token, expired when idle, capped in number."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpgym.asking import asked
from mcpgym.conditions import sound_conditions
from mcpgym.environment import Environment
from mcpgym.episode import CLOSE_SECONDS, Episode, sound
from mcpgym.errors import (
    CannotBegin,
    ConfigurationError,
    EpisodeEnded,
    EpisodeError,
    EpisodeLost,
    McpgymError,
    ServerDraining,
    TooManyEpisodes,
    UnknownEpisodeError,
    UnknownNameError,
)
from mcpgym.guests import Guests
from mcpgym.names import checked_name, new_token
from mcpgym.registry import configure, load_environment, merged_config
from mcpgym.tally import Tally
from mcpgym.tasks import Task
from mcpgym.telemetry import switch
from mcpgym.telemetry.watching import watch
from mcpgym.threads import ToolThreads

logger = logging.getLogger(__name__)

MAX_TOMBSTONES = 100_000
MAX_CONFIGURATIONS = 64
MAX_TOOL_THREADS = 256
STOOD_STILL_SECONDS = 1.0
"""A pause of the whole process (a stopped container, a blocked event loop) beyond which it counts for no idleness."""
WITH_SERVER = "closed with the server"
WITH_PROCESS = "lost, because the process that held it died"
RESET_SECONDS = 120.0
"""Seconds an environment has to begin an episode."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server allows. ``idle_seconds`` without a call ends an episode; ``live`` is the cap on episodes."""

    idle_seconds: float = 1800.0
    live: int = 10_000


@dataclass(slots=True)
class Counters:
    """What has happened since the start, for ``/metrics``; ``tallies`` are of the calls of each environment."""

    opened: int = 0
    scored: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)

    @property
    def calls(self) -> int:
        """Tool calls answered."""
        return sum(tally.calls for tally in self.tallies.values())

    @property
    def call_errors(self) -> int:
        """Tool calls answered with an error."""
        return sum(tally.errors for tally in self.tallies.values())

    @property
    def latencies(self) -> list[float]:
        """The last call times of each environment, in milliseconds."""
        return [value for tally in self.tallies.values() for value in tally.recent]

    def tally(self, name: str) -> Tally:
        """The calls of one environment."""
        return self.tallies.setdefault(name, Tally())


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of an ended episode: enough to say so. ``environment`` is the one that is served, whose name and
    tools are the same under every configuration: an instance made for some episodes is not kept by what they leave."""

    environment: Environment[Any, Any, Any]
    reason: str

    @property
    def lost(self) -> bool:
        """Whether it did not end for a reason of its own: its task may be opened again, elsewhere."""
        return self.reason in (WITH_SERVER, WITH_PROCESS)


class Episodes:
    """The live episodes of one server process, over the environments it serves.

    Args:
        environments: instances by name; these are what players are offered, under these configurations.
        limits: see :class:`Limits`.
        name: of this server among others; its tokens begin with it, and say so whose they are.
    """

    def __init__(
        self, environments: Mapping[str, Environment[Any, Any, Any]], limits: Limits | None = None, name: str = ""
    ) -> None:
        self.environments = dict(environments)
        self.limits = limits or Limits()
        self.name = checked_name(name)
        self.draining = False
        """Whether no other episode begins, because the server was told to stop."""
        self.counters = Counters()
        self._live: dict[str, Episode] = {}
        self._tombstones: OrderedDict[str, Tombstone] = OrderedDict()
        self._configured: OrderedDict[tuple[str, str], Environment[Any, Any, Any]] = OrderedDict()
        self._threads: ToolThreads | None = None
        self._opening: list[Environment[Any, Any, Any]] = []
        self._guests = Guests()
        self._closings = 0
        self._forgotten: list[Environment[Any, Any, Any]] = []
        for name in self.environments:
            self.counters.tally(name)
        if switch.measuring is not None:
            switch.measuring.watch(self)

    @classmethod
    def of(cls, *names: str, limits: Limits | None = None) -> Episodes:
        """Episodes over installed environments, by name, under their default configurations."""
        loaded = [load_environment(name) for name in names]
        return cls({environment.name: environment for environment in loaded}, limits)

    def __len__(self) -> int:
        return len(self._live)

    def environment(self, name: str, config: Mapping[str, Any] | None = None) -> Environment[Any, Any, Any]:
        """The environment ``name`` as served, with the fields in ``config`` changed.

        Raises:
            UnknownNameError: it is not served here, or has no such field.
            ConfigurationError: a value does not fit.
        """
        if name not in self.environments:
            raise UnknownNameError("environment", name, self.environments)
        served = self.environments[name]
        if not config:
            return served
        merged = merged_config(type(served), served.config.model_dump(exclude_unset=True), config)
        key = (name, json.dumps(merged, sort_keys=True, default=repr))
        if key not in self._configured:
            self._configured[key] = configure(type(served), merged)
            if len(self._configured) > MAX_CONFIGURATIONS:
                self._forget_configuration()
        self._configured.move_to_end(key)
        return self._configured[key]

    def _forget_configuration(self) -> None:
        """Drop the least used configuration that no live episode needs; with all in use, keep them."""
        used = [*self._opening, *(episode.environment for episode in self._live.values())]
        for key, environment in list(self._configured.items())[:-1]:
            if not any(environment is other for other in used):
                self._forgotten.append(self._configured.pop(key))
                return

    async def open(
        self,
        name: str,
        *,
        task: str | None = None,
        split: str | None = None,
        index: int | None = None,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
        guest: bool = False,
        max_turns: int | None = None,
    ) -> Episode:
        """A new episode of a task, named by its id, or by split and index.

        At the cap, the episode of a guest (a player who started it without being asked to) makes room: for any that is
        no guest's, and for another guest's when it is over or was left alone for a minute.

        With ``max_turns``, the episode ends after so many calls where its environment would allow more.

        Raises:
            UnknownNameError: no such environment, task, split or field.
            ConfigurationError: task and split are both given, or neither; a value does not fit.
            TooManyEpisodes: the cap is reached.
            ServerDraining: the server was told to stop.
            CannotBegin: the environment lacks what it needs to begin any.
            EpisodeError: the environment could not begin it.
            EpisodeEnded: the server was closed meanwhile.
        """
        if self.draining:
            raise ServerDraining("this server is going down and begins no other episode; try another, or later")
        if max_turns is not None and max_turns < 1:
            raise ConfigurationError(f"max_turns {max_turns}: a number of turns, 1 or more; leave it out for no limit")
        environment = self.environment(name, config)
        row = _row(environment, task, split, index)
        leaving = self._who_makes_room(guest)
        self._opening.append(environment)
        closings = self._closings
        try:
            if leaving is not None:
                await self.close(leaving.token, "evicted to make room for another episode")
            episode = await self._begin(environment, row, seed)
        finally:
            self._opening.remove(environment)
        if self._closings != closings:
            await episode.end(WITH_SERVER)
            raise EpisodeEnded("the server was closed while this episode began")
        episode.max_turns = max_turns
        self._live[episode.token] = episode
        episode.tally.live += 1
        if guest:
            self._guests.add(episode)
        self.counters.opened += 1
        episode.opening = self.counters.opened
        episode.watch = watch(episode)
        return episode

    async def _begin(self, environment: Environment[Any, Any, Any], row: Task, seed: int) -> Episode:
        if self._threads is None:
            self._threads = ToolThreads(MAX_TOOL_THREADS)
        made, limit = False, asyncio.timeout(RESET_SECONDS)
        try:
            async with limit:
                state = await asked(environment.reset, row, seed)
            made = True
            messages = tuple(sound(environment.messages(row, state)))
            conditions = sound_conditions(environment.conditions())
            over = environment.is_done(state)
        except (Exception, SystemExit) as error:
            if made:
                with contextlib.suppress(Exception):
                    await asked(environment.close, state)
            if isinstance(error, ConfigurationError):  # whoever asked gets it, and says it once
                raise CannotBegin(f"{environment.name} cannot run here: {error}") from error
            told = isinstance(error, McpgymError)  # it says what to do; what is a bug is shown with its place
            shown = None if told else error
            logger.error("%s: task %s: reset failed: %s", environment.name, row.id, error, exc_info=shown)
            why = f"reset took over {RESET_SECONDS:g} s" if limit.expired() else str(error) or type(error).__name__
            raise EpisodeError(f"{environment.name} could not begin task {row.id}: {why}") from error
        return Episode(
            token=new_token(self.name),
            environment=environment,
            task=row,
            seed=seed,
            state=state,
            messages=messages,
            threads=self._threads,
            tally=self.counters.tally(environment.name),
            stop_reason="done" if over else None,
            conditions=conditions,
        )

    def get(self, token: str) -> Episode:
        """The live episode with this token.

        Raises:
            EpisodeEnded: it was closed or expired; EpisodeLost where it ended with its server.
            UnknownEpisodeError: there never was one.
        """
        if (episode := self._live.get(token)) is not None:
            return episode
        if (stone := self._tombstones.get(token)) is not None:
            raise (EpisodeLost if stone.lost else EpisodeEnded)(f"this episode has ended: {stone.reason}")
        raise UnknownEpisodeError("no episode has this token")

    def tombstone(self, token: str) -> Tombstone | None:
        """What is left of an ended episode, if it is still remembered."""
        return self._tombstones.get(token)

    async def close(self, token: str, reason: str = "closed") -> None:
        """End an episode and release its state; ending an ended one does nothing.

        Raises:
            UnknownEpisodeError: there never was one.
        """
        episode = self._live.pop(token, None)
        if episode is None:
            if token not in self._tombstones:
                raise UnknownEpisodeError("no episode has this token")
            return
        self._guests.forget(token)
        episode.tally.live -= 1
        environment = self.environments.get(episode.environment.name, episode.environment)
        self._remember(token, Tombstone(environment, reason))
        self.counters.ended[reason.split(" ")[0]] = self.counters.ended.get(reason.split(" ")[0], 0) + 1
        await episode.end(reason)

    def bury(self, token: str, name: str, reason: str) -> None:
        """Remember an episode that ended elsewhere: whoever asks for it here is told why.

        Raises:
            UnknownNameError: its environment is not served here.
        """
        self._remember(token, Tombstone(self.environment(name), reason))

    @property
    def unfinished(self) -> int:
        """How many live episodes somebody may still want: all but those of guests that are over."""
        return sum(not (episode.done and self._guests.has(token)) for token, episode in self._live.items())

    def _remember(self, token: str, stone: Tombstone) -> None:
        self._tombstones[token] = stone
        if len(self._tombstones) > MAX_TOMBSTONES:
            self._tombstones.popitem(last=False)

    async def expire(self) -> int:
        """End every episode that has been idle too long; how many there were."""
        deadline = time.monotonic() - self.limits.idle_seconds
        idle = [token for token, found in self._live.items() if found.last_used < deadline and not found.busy]
        why = f"expired after {self.limits.idle_seconds:g} s without a call"
        await asyncio.gather(*(self.close(token, why) for token in idle))
        await self._shut_down_forgotten()
        return len(idle)

    def gauges(self) -> dict[tuple[str, str], float]:
        """What the environments say in ``gauges()``, by environment and name, summed over its configurations."""
        found: dict[tuple[str, str], float] = {}
        for environment in [*self.environments.values(), *self._configured.values()]:
            try:
                own = {str(name): float(value) for name, value in environment.gauges().items()}
            except (Exception, SystemExit):
                logger.exception("%s: gauges failed", environment.name)
                continue
            for name, value in own.items():
                found[environment.name, name] = found.get((environment.name, name), 0.0) + value
        return found

    async def expire_forever(self) -> None:
        """Run :meth:`expire` now and then until cancelled."""
        pause = min(max(self.limits.idle_seconds / 4, 0.05), 30)
        while True:
            before = time.monotonic()
            await asyncio.sleep(pause)
            if (stood_still := time.monotonic() - before - pause) > STOOD_STILL_SECONDS:
                for episode in self._live.values():
                    episode.last_used += stood_still  # nobody could call while this process was stopped
            try:
                await self.expire()
            except Exception:
                logger.exception("expiring idle episodes failed")

    async def close_all(self) -> None:
        """End every episode, side by side: one that does not let go keeps no other's call waiting."""
        await asyncio.gather(*(self.close(token, WITH_SERVER) for token in list(self._live)))

    async def aclose(self) -> None:
        """End every episode and shut the environments down."""
        self._closings += 1
        await self.close_all()
        self._forgotten += [*self.environments.values(), *self._configured.values()]
        await self._shut_down_forgotten()
        if self._threads is not None:
            self._threads.close()

    async def _shut_down_forgotten(self) -> None:
        while self._forgotten:
            environment = self._forgotten.pop()
            try:
                async with asyncio.timeout(CLOSE_SECONDS):
                    await asked(environment.shutdown)
            except Exception:
                logger.exception("%s: shutdown failed", environment.name)

    def _who_makes_room(self, guest: bool) -> Episode | None:
        """The episode that ends for a new one; None where there is room."""
        if len(self._live) + len(self._opening) < self.limits.live:
            return None
        leaving = self._guests.who_leaves(for_guest=guest)
        if leaving is None:
            raise TooManyEpisodes(
                f"{len(self._live)} episodes are live, which is this server's cap; "
                "close some, wait for idle ones to expire, or raise the cap (--max-episodes)"
            )
        return leaving


def _row(environment: Environment[Any, Any, Any], task: str | None, split: str | None, index: int | None) -> Task:
    if task is not None:
        if split is not None or index is not None:
            raise ConfigurationError("name a task by its id, or by split and index; not by both")
        return environment.task(task)  # type: ignore[no-any-return]
    if split is None:
        raise ConfigurationError(f"which task? Give its id, or a split ({', '.join(environment.splits)}) and an index")
    return environment.task_at(split, index or 0)  # type: ignore[no-any-return]


def listings(environment: Environment[Any, Any, Any]) -> Sequence[Mapping[str, Any]]:
    """The tools of ``environment`` as a model sees them, in their order."""
    return [tool.listing for tool in environment.tools.values()]
