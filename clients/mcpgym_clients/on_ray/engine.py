"""An evaluation split over the processes of a Ray cluster: in place of :func:`mcpgym_rl.run.run`, with its promises.

Specs go out in small portions to whoever has nothing to do. When a player dies with its node, what it had not yet sent
back is played by another; each spec has one trace, and it is what one process would have written.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
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
PLACE_SECONDS = 60.0
"""How long the cluster may take to find a place for the first player."""
DEATHS_IN_A_ROW = 5
"""After so many deaths of players without one trace between them, the run ends."""


class _Waiting:
    """Rollouts that are to be made: those that are new, and before them those that were lost."""

    def __init__(self, specs: Iterator[EpisodeSpec]) -> None:
        self.begun = 0
        self._specs = specs
        self._more = True
        self._again: deque[tuple[int, EpisodeSpec]] = deque()
        self._out = 0
        self._losses: Counter[int] = Counter()
        self._changed = asyncio.Condition()

    @property
    def over(self) -> bool:
        """Whether every rollout has ended."""
        return not (self._more or self._again or self._out)

    def take(self, count: int) -> list[tuple[int, EpisodeSpec]]:
        """The next ``count``, each with its place; fewer where there are no more. Whoever gets some gives word
        (:meth:`done`)."""
        taken: list[tuple[int, EpisodeSpec]] = []
        while len(taken) < count and self._again:
            taken.append(self._again.popleft())
        while len(taken) < count and self._more:
            if (spec := next(self._specs, None)) is None:
                self._more = False
                break
            taken.append((self.begun, spec))
            self.begun += 1
        self._out += bool(taken)
        return taken

    async def done(self, left: list[tuple[int, EpisodeSpec]]) -> None:
        """What was taken has ended, but for what is ``left``, which is to be made again.

        Raises:
            CommandFailed: one of them has been lost too often.
        """
        self._out -= 1
        self._losses.update(place for place, _ in left)
        self._again.extendleft(reversed(left))
        async with self._changed:
            self._changed.notify_all()
        for place, _ in left:
            if self._losses[place] > LOST_AT_MOST:
                raise CommandFailed(f"the episode number {place} was lost {LOST_AT_MOST + 1} times with its player")

    async def wait(self) -> None:
        """Until there may be something to take, or all is over."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._again or self.over)


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
        self._deaths = self._there = 0
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
            CommandFailed: players die and die, or find no place.
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
        """One player after another, as they die, until all is over. It takes no work before it is there: others may."""
        player: Any = None
        try:
            while not waiting.over:
                if player is None:
                    player = await self._placed(waiting)
                    continue
                portion = waiting.take(self._portion)
                if not portion:
                    await waiting.wait()
                    continue
                left = dict(enumerate(portion))
                try:
                    await self._play(player, left, limits, arrived)
                except self._ray.exceptions.RayTaskError as error:
                    raise (error.cause if isinstance(error.cause, Exception) else error) from error
                except self._ray.exceptions.RayError as error:  # it died, or what it had sent was lost with its node
                    self._ray.kill(player)
                    player = None
                    self.moved += len(left)
                    why = str(error).partition("\n")[0]
                    logger.warning("a player died; %d episodes are played by another: %s", len(left), why)
                    await waiting.done(list(left.values()))
                    await self._died(error)
                else:
                    await waiting.done([])
        finally:
            if player is not None:
                self._ray.kill(player)

    async def _placed(self, waiting: _Waiting) -> Any:
        """A player that is there; None where it died before, or all is over."""
        player = self._new()
        try:
            if await self._is_there(player, waiting):
                return player
        except self._ray.exceptions.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from error
        except self._ray.exceptions.RayError as error:
            await self._died(error)
        self._ray.kill(player)
        return None

    async def _is_there(self, player: Any, waiting: _Waiting) -> bool:
        """Wait until a player has found its place; False where all is over before."""
        ready = asyncio.ensure_future(_answer(player.ready.remote()))
        over = asyncio.ensure_future(_over(waiting))
        try:
            while not (ready.done() or over.done()):
                await asyncio.wait({ready, over}, timeout=PLACE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if not (ready.done() or over.done()):
                    free = self._ray.available_resources().get("CPU", 0)
                    logger.warning("a player waits for a CPU of the Ray cluster, which has %g free", free)
                    if not self._there:
                        raise CommandFailed(
                            f"no player found a place on the Ray cluster within {PLACE_SECONDS:g} s: it has {free:g} "
                            "CPUs free; take away what holds them, or add nodes"
                        )
            if ready.done():
                ready.result()
                self._there += 1
            return ready.done()
        finally:
            for one in (ready, over):
                one.cancel()

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

    async def _died(self, error: Exception) -> None:
        self._deaths += 1
        if self._deaths >= DEATHS_IN_A_ROW:
            raise CommandFailed(f"{self._deaths} players in a row died: {error}")
        await asyncio.sleep(0.5 * self._deaths)

    def _new(self) -> Any:
        made = self._ray.remote(PlayerActor).options(num_cpus=1, scheduling_strategy="SPREAD", max_restarts=0)
        return made.remote(self._options, self._variables)


async def _answer(reference: Any) -> Any:
    return await reference


async def _over(waiting: _Waiting) -> None:
    while not waiting.over:
        await waiting.wait()
        await asyncio.sleep(0.1)


class _Early(Exception):
    """A player's run ended early, and so does the whole; its text says why."""
