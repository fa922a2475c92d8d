"""Many rollouts at once: bounded in number, the same results in whatever order they end, and a clear end when the
server is gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mcpgym.errors import ServerUnavailable
from mcpgym_rl.failures import explain
from mcpgym_rl.lanes import Lane
from mcpgym_rl.policy import Policy
from mcpgym_rl.record import not_run
from mcpgym_rl.rollout import Limits, rollout
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceError

PING_SECONDS = 5.0
"""How long a server may take to say that it is there."""
WATCH_SECONDS = 2.0
"""How often a run asks."""


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """One rollout to be made: which episode (``task``, or ``split`` and ``index``), and which ``repeat`` of it."""

    environment: str
    task: str | None = None
    split: str | None = None
    index: int | None = None
    seed: int = 0
    repeat: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> str:
        """The task's id as far as it is known before the episode is open."""
        return self.task or f"{self.split}-{self.index or 0}"


@dataclass(frozen=True, slots=True)
class RunResult:
    """The traces of a run, in the order of its specs. ``failure`` says why it ended early; None when it did not."""

    traces: list[Trace]
    failure: str | None = None


async def run(
    policy: Policy,
    lane: Lane,
    specs: Iterable[EpisodeSpec],
    *,
    concurrency: int = 16,
    limits: Limits | None = None,
    on_trace: Callable[[Trace], None] | None = None,
) -> RunResult:
    """Make every rollout of ``specs``, ``concurrency`` at a time.

    When the server is gone, the run says so within seconds: rollouts under way are recorded as failed with that
    reason, and the others as not run. When the run is cancelled, the same happens with "cancelled", and the
    cancellation goes on. Either way every spec has exactly one trace, and ``on_trace`` has had it.

    Args:
        policy: what plays; closed by its owner, not here.
        lane: where episodes are opened; closed by its owner too.
        specs: the rollouts to be made.
        concurrency: how many are under way at once.
        limits: of each rollout.
        on_trace: gets each trace as its rollout ends, in that order; ``place`` of a trace is its position in ``specs``.

    Raises:
        ConfigurationError: an episode cannot be opened as asked; the rollouts under way are cancelled.
    """
    return await _Run(policy, lane, list(specs), limits, on_trace).run(concurrency)


class _Run:
    """A run under way."""

    def __init__(
        self,
        policy: Policy,
        lane: Lane,
        specs: list[EpisodeSpec],
        limits: Limits | None,
        on_trace: Callable[[Trace], None] | None,
    ) -> None:
        self.policy, self.lane, self.specs, self.limits, self.on_trace = policy, lane, specs, limits, on_trace
        self.traces: dict[int, Trace] = {}
        self.failure: str | None = None
        self._waiting = iter(enumerate(specs))
        self._suspicion = asyncio.Event()

    async def run(self, concurrency: int) -> RunResult:
        workers = [asyncio.create_task(self._work()) for _ in range(max(1, min(concurrency, len(self.specs))))]
        watch = asyncio.create_task(self._watch())
        try:
            pending: set[asyncio.Task[None]] = set(workers)
            while pending and not watch.done():
                done, _ = await asyncio.wait({*pending, watch}, return_when=asyncio.FIRST_COMPLETED)
                pending -= done
                for worker in done - {watch}:
                    worker.result()  # a ConfigurationError, or a bug, ends the run
            if watch.done():
                self.failure = f"the run ended early: {watch.result()}"
        finally:
            try:
                await _stopped([*workers, watch])
            finally:
                self._record_not_run()
        return RunResult([self.traces[place] for place in range(len(self.specs))], self.failure)

    async def _work(self) -> None:
        for place, spec in self._waiting:
            await rollout(
                self.policy,
                self.lane,
                environment=spec.environment,
                task=spec.task,
                split=spec.split,
                index=spec.index,
                seed=spec.seed,
                config=spec.config,
                limits=self.limits,
                repeat=spec.repeat,
                place=place,
                on_end=self._record,
            )
            await asyncio.sleep(0)  # a lane that never waits must not starve the others, or Ctrl-C

    def _record_not_run(self) -> None:
        why = self.failure or "the run was stopped"
        for place, spec in enumerate(self.specs):
            if place not in self.traces:
                known = {"split": spec.split or "", "seed": spec.seed, "config": dict(spec.config)}
                made = not_run(self.policy.name, spec.environment, spec.named, why, **known)
                self._record(replace(made, repeat=spec.repeat, place=place))

    def _record(self, trace: Trace) -> None:
        if trace.stop_reason == StopReason.CANCELLED and self.failure is not None:
            error = TraceError(ServerUnavailable.__name__, self.failure)
            trace = replace(trace, stop_reason=StopReason.ENVIRONMENT_FAILED, error=error)
        if trace.error is not None and trace.error.kind == ServerUnavailable.__name__:
            self._suspicion.set()
        self.traces[trace.place] = trace
        if self.on_trace is not None:
            self.on_trace(trace)

    async def _watch(self) -> str:
        """Ask the server again and again, at once when a rollout could not reach it; why it counts as gone."""
        misses = 0
        while True:
            self._suspicion.clear()
            try:
                async with asyncio.timeout(PING_SECONDS):
                    await self.lane.check()
                misses = 0
            except TimeoutError:
                misses += 1
                if misses == 2:
                    return f"the environment server did not answer within {PING_SECONDS:g} s, twice"
            except Exception as error:
                return explain(error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.25 if misses else WATCH_SECONDS):
                    await self._suspicion.wait()


async def _stopped(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel ``tasks`` and wait until all have cleaned up, even while being cancelled again."""
    for task in tasks:
        task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while unfinished := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(unfinished)
        except asyncio.CancelledError as error:
            cancelled = error
    for task in tasks:
        if not task.cancelled():
            task.exception()  # seen
    if cancelled is not None:
        raise cancelled
