"""``mcpgym eval``: a policy over many episodes; ``traces.jsonl`` as they end, then ``summary.json`` and a table."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcpgym import __version__
from mcpgym.receipts import MAX_CLAIM
from mcpgym_clients.arena import open_arena, require_tasks
from mcpgym_clients.console import escaped, out, warn
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_clients.failures import INTERRUPTED, CommandFailed
from mcpgym_clients.files import SUMMARY, TRACES, run_folder
from mcpgym_clients.options import parse_config
from mcpgym_clients.progress import RunProgress
from mcpgym_clients.receipt_files import write_receipts
from mcpgym_clients.report import render
from mcpgym_clients.summary import Summary
from mcpgym_rl.files import write_atomically
from mcpgym_rl.lanes import Lane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policy import Policy
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec
from mcpgym_rl.run import run as run_rollouts
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceWriter


class Evaluation:
    """One evaluation: its files, what has been counted so far, and how it ended."""

    def __init__(self, options: EvalOptions, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.summary = Summary()
        self.started = time.time()
        self.failure: str | None = None
        self.interrupted = False
        self._first: Trace | None = None
        self._writer = TraceWriter(folder / TRACES)
        self._unwritable: OSError | None = None

    def add(self, trace: Trace) -> None:
        """Write and count one trace.

        Raises:
            CommandFailed: it cannot be written; said once, for the run ends with it.
        """
        if self._unwritable is not None:
            return
        try:
            self._writer.write(trace)
        except OSError as error:
            self._unwritable = error
            raise CommandFailed(f"cannot write {self._writer.path}: {error.strerror or error}") from error
        self.summary.add(trace)
        if self._first is None and trace.schema_hash:
            self._first = trace

    async def play(
        self, policy: Policy, lane: Lane, name: str, config: Mapping[str, Any], limits: Limits | None = None
    ) -> None:
        """Make all rollouts: every task in order, and that as often as it is to be repeated.

        Those that never began, because the run ended before, are not counted and leave no trace.
        """
        options = self.options
        specs = (
            EpisodeSpec(
                name, split=options.split, index=index, seed=options.seed + repeat, repeat=repeat, config=config
            )
            for repeat in range(options.repeats)
            for index in range(options.tasks)
        )
        with RunProgress(f"{name}, {policy.name}", options.planned) as progress:

            def ended(trace: Trace) -> None:
                self.add(trace)
                progress.add(None if trace.score is None else trace.score.total)

            result = await run_rollouts(
                policy,
                lane,
                specs,
                concurrency=min(options.concurrency, options.planned),
                limits=limits,
                on_trace=ended,
                keep_traces=False,
            )
        self.failure = result.failure

    @property
    def complete(self) -> bool:
        """Whether every episode that was asked for was played to an end of its own."""
        return self.failure is None and not self.interrupted and self.summary.episodes == self.options.planned

    def finish(self) -> dict[str, Any]:
        """Write ``summary.json``; its content."""
        self._writer.close()
        write_receipts(self.folder)
        options, first = self.options, self._first
        made = self.summary.as_json()
        run = {
            "environment": first.environment if first else options.environment,
            "environment_version": first.environment_version if first else None,
            "config": dict(first.config) if first else dict(parse_config(options.config, [options.environment])),
            "policy": first.policy if first else options.policy_name,
            "policy_options": options.policy_options,
            "split": options.split,
            "n": options.tasks,
            "repeats": options.repeats,
            "seed": options.seed,
            "planned": options.planned,
            "concurrency": options.concurrency,
            "max_turns": options.max_turns,
            "lane": options.lane_name,
            "server": options.server,
            "schema_hash": first.schema_hash if first else None,
            "schema_hashes": sorted(filter(None, self.summary.schema_hashes)),
            "mcpgym": __version__,
            "command": options.command(),
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.started)),
            "seconds": round(time.time() - self.started, 3),
        }
        whole = {**made, "complete": self.complete, "failure": self.failure, "run": run}
        write_atomically(self.folder / SUMMARY, whole)
        return whole


def run(options: EvalOptions) -> int:
    """Evaluate; the exit code.

    Raises:
        UsageProblem, ConfigurationError: what was asked for cannot be.
        CommandFailed: the run failed, or nothing was scored.
    """
    evaluation: Evaluation | None = None

    def begin(options: EvalOptions) -> Evaluation:
        nonlocal evaluation
        words = (options.environment, options.policy.partition("@")[0])
        evaluation = Evaluation(options, run_folder(options.out, *words, overwrite=options.overwrite))
        return evaluation

    try:
        asyncio.run(_evaluate(options, begin))
    except (KeyboardInterrupt, asyncio.CancelledError):
        if evaluation is None:
            return INTERRUPTED
        evaluation.interrupted = True
    except BaseException as error:
        if evaluation is not None:
            evaluation.failure = str(error)
            with contextlib.suppress(OSError):
                evaluation.finish()
        raise
    assert evaluation is not None
    return _report(evaluation)


def _report(evaluation: Evaluation) -> int:
    with _deaf_to_interrupts():
        summary = evaluation.finish()
    out().print(render(summary))
    out().print(f"[dim]{TRACES} and {SUMMARY} are in {escaped(evaluation.folder)}[/dim]", soft_wrap=True)
    out().print(f"[dim]read them:[/dim] mcpgym show {escaped(shlex.quote(str(evaluation.folder)))}", soft_wrap=True)
    if evaluation.interrupted:
        ended = evaluation.summary.episodes - evaluation.summary.stop_reasons[StopReason.CANCELLED]
        warn(f"interrupted when {ended} of {evaluation.options.planned} episodes had ended; they are kept")
        return INTERRUPTED
    if evaluation.failure is not None:
        raise CommandFailed(evaluation.failure)
    if not evaluation.summary.scored:
        reasons = "; ".join(f"{name}: {text}" for name, text in evaluation.summary.unscored_examples.items())
        raise CommandFailed(f"no episode was scored ({reasons})")
    return 0


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """A second Ctrl-C must not cost the summary."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def _evaluate(options: EvalOptions, begin: Callable[[EvalOptions], Evaluation]) -> None:
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(NotImplementedError, RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with open_arena(options) as arena:
        tasks = await require_tasks(arena, options.split, options.tasks, fewer=options.fewer)
        options = replace(options, tasks=tasks)
        policy = make_policy(options.policy, arena.environment, **options.policy_options)
        arena.lane.claims = {"policy": policy.name[:MAX_CLAIM], "harness": f"mcpgym eval {__version__}"}
        try:
            limits = Limits(max_turns=options.max_turns)
            evaluation = begin(options)
            await evaluation.play(policy, arena.lane, arena.name, arena.config, limits)
        finally:
            await policy.aclose()
