"""A policy over many episodes: ``traces.jsonl`` as they end, then ``summary.json``."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcpgym import __version__
from mcpgym.environment import Environment
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_clients.exact_values import exact_values
from mcpgym_clients.failures import CommandFailed, UsageProblem
from mcpgym_clients.files import RUN, SUMMARY, TRACES
from mcpgym_clients.options import parse_config
from mcpgym_clients.progress import RunProgress
from mcpgym_clients.receipt_files import write_receipts
from mcpgym_clients.run_file import RunFile, foreign, now
from mcpgym_clients.spending import Spending
from mcpgym_clients.summary import Summary
from mcpgym_rl.exact import NoExactValue
from mcpgym_rl.files import sweep, write_atomically
from mcpgym_rl.lanes import Lane
from mcpgym_rl.locks import locked
from mcpgym_rl.policies.endpoint import without_password
from mcpgym_rl.policy import Policy
from mcpgym_rl.resuming import ATTEMPTS, SYNC_SECONDS, attempts, finished, settle
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec, RunResult
from mcpgym_rl.run import run as run_rollouts
from mcpgym_rl.traces import Trace, TraceWriter

Engine = Callable[..., Awaitable[RunResult]]
"""What makes rollouts: :func:`mcpgym_rl.run.run`, or what keeps its promises elsewhere."""
AGENT = ("name", "version", "model")
"""What a summary says of the agent product that played."""


class Evaluation:
    """One evaluation: its files, what has been counted so far, and how it ended.

    What is in ``folder`` already is gone on with: episodes with a score are counted and not played again. Until
    :meth:`finish` no other process may work in it.

    Args:
        options: what is asked for.
        folder: where its files go; it exists.
        spending: what counts tokens and cost, and knows their limits; none without.
        about: what the run is, to be written into ``run.json``; none is written without.

    Raises:
        ConfigurationError: another process is at work in the folder, or a trace in it is damaged.
        UsageProblem: it has the traces of another run.
    """

    def __init__(
        self, options: EvalOptions, folder: Path, spending: Spending | None = None, about: RunFile | None = None
    ) -> None:
        self.options = options
        self.folder = folder
        self.summary = Summary(options.success)
        self.started = now() if about is None else about.started
        self.failure: str | None = None
        self.interrupted = False
        self.exact: dict[str, Any] | None = None
        self.no_exact: str | None = None
        self.found = 0
        self.reopened = 0
        self._begun = time.monotonic()
        self._first: Trace | None = None
        self._spending = spending
        self._about = about
        self._unwritable: OSError | None = None
        with contextlib.ExitStack() as held:
            held.enter_context(locked(folder))
            self._missing = self._take_up()
            if about is not None:
                about.write(folder)
            self._writer = TraceWriter(folder / TRACES, sync=SYNC_SECONDS)
            self._held = held.pop_all()

    def _take_up(self) -> Sequence[int]:
        """Count what has been played; the places of what has not."""
        sweep(self.folder)
        done: set[int] = set()
        for trace in finished(self.folder):
            if not (0 <= trace.place < self.options.planned) or self._asked(trace.place) != (trace.seed, trace.repeat):
                raise UsageProblem(f"{self.folder / TRACES} has episodes of another run: number {trace.place} is one")
            if (fault := self._foreign(trace)) is not None:
                raise UsageProblem(
                    f"{self.folder / TRACES} has episodes of another run: number {trace.place} is one {fault}"
                )
            done.add(trace.place)
            self._count(trace)
        settle(self.folder)
        if self._spending is not None:
            for trace in attempts(self.folder):
                self._spending.add_again(trace)
        self.found = len(done)
        planned = range(self.options.planned)
        return [place for place in planned if place not in done] if done else planned

    def _foreign(self, trace: Trace) -> str | None:
        return None if self._about is None else foreign(trace, self._about, self._first)

    def _asked(self, place: int) -> tuple[int, int]:
        """The seed and the repeat of the episode number ``place``."""
        repeat = place // self.options.tasks
        return self.options.seed + repeat, repeat

    def add(self, trace: Trace) -> None:
        """Write and count one trace.

        Raises:
            CommandFailed: it cannot be written; said once, for the run ends with it.
        """
        if self._unwritable is not None:
            return
        if trace.schema_hash and (fault := self._foreign(trace)) is not None:
            raise CommandFailed(f"an episode could not be counted with the others of this run: it is one {fault}")
        try:
            self._writer.write(trace)
        except OSError as error:
            self._unwritable = error
            raise CommandFailed(f"cannot write {self._writer.path}: {error.strerror or error}") from error
        self._count(trace)

    def add_lost(self, trace: Trace) -> None:
        """Keep what was played of an episode that was lost with its server, and is played again."""
        self.reopened += 1
        with contextlib.suppress(OSError), TraceWriter(self.folder / ATTEMPTS, sync=SYNC_SECONDS) as attempts:
            attempts.write(trace)
        if self._spending is not None:
            self._spending.add_again(trace)

    def _count(self, trace: Trace) -> None:
        self.summary.add(trace)
        if self._spending is not None:
            self._spending.add(trace)
        if self._first is None and trace.schema_hash:
            self._first = trace

    async def play(
        self,
        policy: Policy,
        lane: Lane,
        name: str,
        config: Mapping[str, Any],
        limits: Limits | None = None,
        engine: Engine = run_rollouts,
    ) -> None:
        """Make the rollouts that are missing: every task in order, and that as often as it is to be repeated.

        When a budget is spent, no other begins. Those that never began, because the run ended before, are not counted
        and leave no trace.
        """
        options, missing = self.options, self._missing
        if not missing:
            return
        stopped: str | None = None

        def specs() -> Iterator[EpisodeSpec]:
            nonlocal stopped
            for place in missing:
                stopped = None if self._spending is None else self._spending.met()
                if stopped is not None:
                    return
                seed, repeat = self._asked(place)
                index = place % options.tasks
                yield EpisodeSpec(name, split=options.split, index=index, seed=seed, repeat=repeat, config=config)

        with RunProgress(f"{name}, {policy.name}", len(missing)) as progress:

            def ended(trace: Trace) -> None:
                self.add(replace(trace, place=missing[trace.place]))
                progress.add(None if trace.score is None else trace.score.total)

            def lost(trace: Trace) -> None:
                self.add_lost(replace(trace, place=missing[trace.place]))

            result = await engine(
                policy,
                lane,
                specs(),
                concurrency=min(options.at_once, len(missing)),
                limits=limits,
                on_trace=ended,
                on_lost=lost,
                keep_traces=False,
            )
        self.failure = result.failure
        if self.failure is None and stopped is not None:
            self.failure = f"{stopped}; {self.summary.episodes} of {options.planned} episodes were played"

    async def work_out(self, policy: Policy, environment: Environment[Any, Any, Any] | None) -> None:
        """Work out the exact value, where there is one."""
        options = self.options
        try:
            self.exact = await exact_values(
                policy,
                environment,
                self.summary.tasks,
                self._first,
                max_turns=options.max_turns,
                wanted=options.exact,
                concurrency=options.at_once,
            )
        except NoExactValue as error:
            self.no_exact = str(error)

    @property
    def resumable(self) -> bool:
        """Whether its folder says what the run is."""
        return (self.folder / RUN).is_file()

    @property
    def complete(self) -> bool:
        """Whether every episode that was asked for was played to an end of its own."""
        return self.failure is None and not self.interrupted and self.summary.episodes == self.options.planned

    def finish(self) -> dict[str, Any]:
        """Write ``summary.json``; its content."""
        with self._held:
            return self._finish()

    def _finish(self) -> dict[str, Any]:
        self._writer.close()
        write_receipts(self.folder)
        options, first = self.options, self._first
        made = self.summary.as_json()
        if self.exact is not None:
            made["exact"] = self.exact
        run = {
            "environment": first.environment if first else options.environment,
            "environment_version": first.environment_version if first else None,
            "config": dict(first.config) if first else dict(parse_config(options.config, [options.environment])),
            "policy": first.policy if first else options.policy_name,
            "policy_options": options.policy_options,
            "agent": None if first is None or not first.agent else {name: first.agent.get(name) for name in AGENT},
            "split": options.split,
            "n": options.tasks,
            "repeats": options.repeats,
            "seed": options.seed,
            "planned": options.planned,
            "concurrency": options.concurrency,
            "max_turns": options.max_turns,
            "timeout": options.timeout,
            "max_cost": options.max_cost,
            "max_total_tokens": options.max_total_tokens,
            "lane": options.lane_name,
            "server": None if options.server is None else without_password(options.server),
            "schema_hash": first.schema_hash if first else None,
            "schema_hashes": sorted(filter(None, self.summary.schema_hashes)),
            "mcpgym": __version__,
            "command": options.command(),
            "started": self.started,
            "seconds": round(time.monotonic() - self._begun, 3),
            "reopened": self.reopened,
        }
        cost = None if self._spending is None else self._spending.as_json()
        whole = {**made, "cost": cost, "complete": self.complete, "failure": self.failure, "run": run}
        write_atomically(self.folder / SUMMARY, whole)
        return whole
