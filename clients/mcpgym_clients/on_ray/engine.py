"""An evaluation split over the processes of a Ray cluster: in place of :func:`mcpgym_rl.run.run`, with its promises.

Specs go out in small portions to whoever has nothing to do. When a player dies with its node, what it had not yet sent
back is played by another; each spec has one trace, and it is what one process would have written.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from mcpgym.control_plane.secret import VARIABLE, configured_secret
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.on_ray.player_actor import Ended, PlayerActor, passed_on
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import LOST_AT_MOST, EpisodeSpec, RunResult
from mcpgym_rl.traces import Trace

logger = logging.getLogger(__name__)

PORTION = 4
"""Portions are of so many times what a player plays at once, so that a lost one costs little."""
DEATHS_IN_A_ROW = 5
"""After so many deaths of players without one trace between them, the run ends."""


@dataclass(slots=True)
class _Waiting:
    """Rollouts that are to be made: those that are new, and before them those that were lost."""

    specs: Iterator[EpisodeSpec]
    again: deque[tuple[int, EpisodeSpec]] = field(default_factory=deque)
    begun: int = 0
    losses: dict[int, int] = field(default_factory=dict)

    def take(self, count: int) -> list[tuple[int, EpisodeSpec]]:
        """The next ``count``, each with its place; fewer where there are no more."""
        taken: list[tuple[int, EpisodeSpec]] = []
        while len(taken) < count and self.again:
            taken.append(self.again.popleft())
        while len(taken) < count and (spec := next(self.specs, None)) is not None:
            taken.append((self.begun, spec))
            self.begun += 1
        return taken

    def give_back(self, left: list[tuple[int, EpisodeSpec]]) -> int | None:
        """What a dead player had not sent back; the place of one that has killed too many, where there is one."""
        for place, _ in left:
            self.losses[place] = self.losses.get(place, 0) + 1
        self.again.extendleft(reversed(left))
        return next((place for place, _ in left if self.losses[place] > LOST_AT_MOST), None)


class RayRun:
    """Plays like :func:`~mcpgym_rl.run.run`, on ``players`` processes of the cluster that ``ray`` is connected to.

    ``moved`` counts the rollouts that were played anew because their player died.
    """

    def __init__(self, ray: Any, options: EvalOptions) -> None:
        self._ray = ray
        cpus = int(ray.cluster_resources().get("CPU", 1))
        self.players = max(1, min(options.shards or cpus, options.planned))
        at_once = max(1, options.at_once // self.players)
        rate = None if options.rate_limit is None else options.rate_limit / self.players
        self._options = replace(options, concurrency=at_once, rate_limit=rate, secret_file=None)
        self._portion = at_once * PORTION
        self._variables = passed_on()
        if (secret := configured_secret(file=options.secret_file)) is not None:
            self._variables[VARIABLE] = secret
        self._deaths = 0
        self.moved = 0

    async def __call__(
        self,
        policy: Any,
        lane: Any,
        specs: Iterable[EpisodeSpec],
        *,
        limits: Limits | None = None,
        on_trace: Callable[[Trace], None] | None = None,
        on_lost: Callable[[Trace], None] | None = None,
        **ignored: Any,
    ) -> RunResult:
        """Make every rollout; policy and lane are the players' own.

        Raises:
            ConfigurationError: an episode cannot be opened as asked.
            CommandFailed: players die and die.
        """
        waiting = _Waiting(iter(specs))

        def arrived(one: Ended, place: int) -> None:
            self._deaths = 0
            trace = replace(one.trace, place=place)
            taker = on_lost if one.lost else on_trace
            if taker is not None:
                taker(trace)

        working = [asyncio.ensure_future(self._work(waiting, limits or Limits(), arrived)) for _ in range(self.players)]
        try:
            done, _ = await asyncio.wait(working, return_when=asyncio.FIRST_EXCEPTION)
            for one in done:
                one.result()
        except _Early as early:
            return RunResult([], str(early), waiting.begun)
        finally:
            for one in working:
                one.cancel()
            await asyncio.wait(working)
        return RunResult([], None, waiting.begun)

    async def _work(self, waiting: _Waiting, limits: Limits, arrived: Callable[[Ended, int], None]) -> None:
        """One player after another, as they die, until nothing waits."""
        player: Any = None
        try:
            while portion := waiting.take(self._portion):
                if player is None:
                    player = self._new()
                left = dict(enumerate(portion))
                try:
                    await self._play(player, left, limits, arrived)
                except self._ray.exceptions.RayTaskError as error:
                    raise (error.cause if isinstance(error.cause, Exception) else error) from error
                except self._ray.exceptions.RayError as error:  # it died, or what it had sent was lost with its node
                    player = None
                    await self._died(waiting, list(left.values()), error)
        finally:
            if player is not None:
                self._ray.kill(player)

    async def _play(
        self,
        player: Any,
        left: dict[int, tuple[int, EpisodeSpec]],
        limits: Limits,
        arrived: Callable[[Ended, int], None],
    ) -> None:
        specs = [spec for _, spec in left.values()]
        async for reference in player.play.options(num_returns="streaming").remote(specs, limits):
            one: Ended | str = await reference
            if isinstance(one, str):
                raise _Early(one)
            arrived(one, left[one.place][0])
            if not one.lost:
                del left[one.place]

    async def _died(self, waiting: _Waiting, left: list[tuple[int, EpisodeSpec]], error: Exception) -> None:
        self._deaths += 1
        self.moved += len(left)
        logger.warning("a player died; %d episodes are played by another: %s", len(left), str(error).split("\n")[0])
        poison = waiting.give_back(left)
        if poison is not None:
            raise CommandFailed(
                f"the episode number {poison} was lost {LOST_AT_MOST + 1} times with its player: {error}"
            )
        if self._deaths >= DEATHS_IN_A_ROW:
            raise CommandFailed(f"{self._deaths} players in a row died: {error}")
        await asyncio.sleep(0.2 * self._deaths)

    def _new(self) -> Any:
        made = self._ray.remote(PlayerActor).options(num_cpus=1, scheduling_strategy="SPREAD", max_restarts=0)
        return made.remote(self._options, self._variables)


class _Early(Exception):
    """A player's run ended early, and so does the whole; its text says why."""
