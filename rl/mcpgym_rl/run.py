"""Many rollouts at once: bounded in number, the same results in whatever order they end, and a clear end when the
server is gone."""

from __future__ import annotations

import asyncio
import contextlib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mcpgym.errors import EpisodeLost, ServerUnavailable
from mcpgym_rl.failures import explain
from mcpgym_rl.lanes import Lane
from mcpgym_rl.policy import Policy, PolicyUnavailable, Turn
from mcpgym_rl.rollout import Limits, rollout
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceError

PING_SECONDS = 5.0
"""How long a server may take to say that it is there."""
WATCH_SECONDS = 2.0
"""How often a run asks."""
LOST_AT_MOST = 3
"""How often one rollout may lose its episode before it is recorded as failed: a task may be what ends its servers."""
FAILED_IN_A_ROW = 3
"""At least so many rollouts in a row find the policy unavailable, and as many as are under way, before a run ends."""


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """One rollout to be made: which episode (``task``, or ``split`` and ``index``), and which ``repeat`` of it.

    ``given`` and ``temperatures`` are those of :func:`~mcpgym_rl.rollout.rollout`.
    """

    environment: str
    task: str | None = None
    split: str | None = None
    index: int | None = None
    seed: int = 0
    repeat: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)
    given: Sequence[Turn] = ()
    temperatures: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run went.

    ``traces`` are those of the rollouts that began, which are always the first ``begun`` of the specs, in their order
    (empty where they were not to be kept). ``failure`` says why the run ended early; None when it did not.
    """

    traces: list[Trace]
    failure: str | None = None
    begun: int = 0


async def run(
    policy: Policy,
    lane: Lane,
    specs: Iterable[EpisodeSpec],
    *,
    concurrency: int = 16,
    limits: Limits | None = None,
    on_trace: Callable[[Trace], None] | None = None,
    on_lost: Callable[[Trace], None] | None = None,
    keep_traces: bool = True,
) -> RunResult:
    """Make every rollout of ``specs``, ``concurrency`` at a time.

    When the server is gone, the run says so within seconds, and so it does when the policy was unavailable to several
    rollouts in a row: those under way are recorded as failed with that reason, and no other begins. When the run is
    cancelled, the same happens with "cancelled", and the cancellation goes on. Either way each spec whose rollout began
    has exactly one trace, which ``on_trace`` has had, and those are the first specs: none is passed over.

    An episode that is lost with the process or server that held it, while others live, is opened again: the same task
    and seed, from the beginning. What was played of the lost one has no score and is no trace of the run.

    Args:
        policy: what plays; closed by its owner, not here.
        lane: where episodes are opened; closed by its owner too.
        specs: the rollouts to be made; taken one at a time as they begin.
        concurrency: how many are under way at once.
        limits: of each rollout.
        on_trace: gets each trace as its rollout ends, in that order; ``place`` of a trace is its position in ``specs``.
        on_lost: gets what was played of each episode that was lost and is played again, its ``place`` as above.
        keep_traces: whether the result holds the traces; without, memory does not grow with the run.

    Raises:
        ConfigurationError: an episode cannot be opened as asked; the rollouts under way are cancelled.
    """
    concurrency = max(1, min(concurrency, operator.length_hint(specs, concurrency)))
    return await _Run(policy, lane, specs, concurrency, limits, on_trace, on_lost, keep_traces).run()


class _Run:
    """A run under way."""

    def __init__(
        self,
        policy: Policy,
        lane: Lane,
        specs: Iterable[EpisodeSpec],
        concurrency: int,
        limits: Limits | None,
        on_trace: Callable[[Trace], None] | None,
        on_lost: Callable[[Trace], None] | None,
        keep_traces: bool,
    ) -> None:
        self.policy, self.lane, self.limits, self.on_trace = policy, lane, limits, on_trace
        self.on_lost = on_lost
        self.concurrency, self.keep_traces = concurrency, keep_traces
        self.traces: dict[int, Trace] = {}
        self.begun = 0
        self._waiting = iter(specs)
        self._gone: TraceError | None = None
        self._unavailable = 0
        self._policy_gone: str | None = None
        self._suspicion = asyncio.Event()

    async def run(self) -> RunResult:
        workers = [asyncio.create_task(self._work()) for _ in range(self.concurrency)]
        watch = asyncio.create_task(self._watch())
        try:
            pending: set[asyncio.Task[None]] = set(workers)
            while pending and not watch.done():
                done, _ = await asyncio.wait({*pending, watch}, return_when=asyncio.FIRST_COMPLETED)
                pending -= done
                for worker in done - {watch}:
                    worker.result()  # a ConfigurationError, or a bug, ends the run
            if watch.done():
                self._gone = watch.result()
        finally:
            await _stopped([*workers, watch])
        traces = [self.traces[place] for place in sorted(self.traces)]
        return RunResult(traces, None if self._gone is None else self._gone.message, self.begun)

    async def _work(self) -> None:
        for spec in self._waiting:
            place, self.begun = self.begun, self.begun + 1
            for attempt in range(1, LOST_AT_MOST + 1):
                if await self._play(spec, place, last=attempt == LOST_AT_MOST):
                    break

    async def _play(self, spec: EpisodeSpec, place: int, *, last: bool) -> bool:
        """Make a rollout; whether it was recorded: not where it lost its episode, unless this try is the last."""
        recorded = True

        def ended(trace: Trace) -> None:
            nonlocal recorded
            if last or not self._may_begin_anew(trace):
                self._record(trace)
                return
            recorded = False
            self._suspicion.set()
            if self.on_lost is not None:
                self.on_lost(trace)

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
            given=spec.given,
            temperatures=spec.temperatures,
            place=place,
            on_end=ended,
        )
        return recorded

    def _may_begin_anew(self, trace: Trace) -> bool:
        """Whether a rollout only lost its episode, which may be opened again."""
        if trace.error is None or trace.score is not None or self._gone is not None:
            return False
        kinds = {EpisodeLost.__name__}
        if getattr(getattr(self.lane, "control", None), "several", False):
            kinds.add(ServerUnavailable.__name__)
        return trace.error.kind in kinds

    def _record(self, trace: Trace) -> None:
        if trace.stop_reason == StopReason.CANCELLED and self._gone is not None:
            policys = self._gone.kind == PolicyUnavailable.__name__
            reason = StopReason.POLICY_FAILED if policys else StopReason.ENVIRONMENT_FAILED
            trace = replace(trace, stop_reason=reason, error=self._gone)
        self._suspect(trace.error)
        if self.keep_traces:
            self.traces[trace.place] = trace
        if self.on_trace is not None:
            self.on_trace(trace)

    def _suspect(self, error: TraceError | None) -> None:
        """Whether what ended a rollout should end them all."""
        if error is not None and error.kind == ServerUnavailable.__name__:
            self._suspicion.set()
        if error is None or error.kind != PolicyUnavailable.__name__:
            self._unavailable = 0
            return
        self._unavailable += 1
        if self._unavailable >= max(FAILED_IN_A_ROW, self.concurrency):
            self._policy_gone = error.message
            self._suspicion.set()

    async def _watch(self) -> TraceError:
        """Ask the server again and again, at once when a rollout could not reach it; who is gone, and how we know."""
        misses = 0
        while self._policy_gone is None:
            self._suspicion.clear()
            try:
                async with asyncio.timeout(PING_SECONDS):
                    await self.lane.check()
                misses = 0
            except TimeoutError:
                misses += 1
                if misses == 2:
                    why = f"the environment server did not answer within {PING_SECONDS:g} s, twice"
                    return _gone(ServerUnavailable, why)
            except Exception as error:
                return _gone(ServerUnavailable, explain(error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.25 if misses else WATCH_SECONDS):
                    await self._suspicion.wait()
        return _gone(PolicyUnavailable, self._policy_gone)


def _gone(whose: type[Exception], why: str) -> TraceError:
    return TraceError(whose.__name__, f"the run ended early: {why}")


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
