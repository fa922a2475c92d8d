"""``mcpgym collect``: rollouts of a policy as data for fine-tuning."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mcpgym_clients.arena import Arena, open_arena, require_tasks
from mcpgym_clients.console import escaped, out, warn
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_clients.failures import INTERRUPTED, CommandFailed, UsageProblem
from mcpgym_clients.files import run_folder
from mcpgym_clients.options import parse_config
from mcpgym_clients.progress import RunProgress
from mcpgym_rl.collect import SFT, Collection, Collector
from mcpgym_rl.data_card import Card
from mcpgym_rl.keep import parse_keep
from mcpgym_rl.policies import make_policy
from mcpgym_rl.rollout import Limits
from mcpgym_rl.traces import Trace

if TYPE_CHECKING:
    from mcpgym_rl.local.directory import ModelDirectory

ALL_TASKS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """What was typed. ``eval`` has what is the same as in an evaluation; its ``tasks`` is the number of rollouts."""

    eval: EvalOptions
    keep: str
    model: Path | None


def run(options: CollectOptions) -> int:
    """Collect, or go on with it; the exit code.

    Raises:
        UsageProblem, ConfigurationError: what was asked for cannot be.
        CommandFailed: the run failed, or nothing was kept.
    """
    model = None if options.model is None else _open(options.model)
    parse_keep(options.keep)  # and with that
    work = _Work(options, model)
    try:
        asyncio.run(work.do())
    except (KeyboardInterrupt, asyncio.CancelledError):
        if work.collector is None:
            return INTERRUPTED
        work.interrupted = True
    return work.report()


def _open(path: Path) -> ModelDirectory:
    from mcpgym_rl.local.directory import open_directory

    model = open_directory(path)
    _ = model.chat  # says now what is wrong with it
    return model


class _Work:
    """One run of the command."""

    def __init__(self, options: CollectOptions, model: ModelDirectory | None) -> None:
        self.options, self.model = options, model
        self.collector: Collector | None = None
        self.keep: Callable[[Trace], bool] = parse_keep(options.keep)
        self.interrupted = False

    async def do(self) -> None:
        """Play what is missing."""
        options = self.options.eval
        task = asyncio.current_task()
        assert task is not None
        with contextlib.suppress(NotImplementedError, RuntimeError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        async with open_arena(options) as arena:
            size = await require_tasks(arena, options.split, ALL_TASKS, fewer=True)
            if arena.environment is not None:
                self.keep = parse_keep(self.options.keep, arena.environment.rewards)
            policy = make_policy(options.policy, arena.environment, **options.policy_options)
            try:
                collector = self._begin(arena, policy.name, size)
                label = f"{arena.name}, {policy.name}"
                with RunProgress(label, options.tasks - collector.found) as progress:
                    await collector.play(
                        policy,
                        arena.lane,
                        config=arena.config,
                        concurrency=options.concurrency,
                        limits=Limits(max_turns=options.max_turns),
                        on_trace=lambda trace: progress.add(None if trace.score is None else trace.score.total),
                    )
            finally:
                await policy.aclose()

    def _begin(self, arena: Arena, policy: str, size: int) -> Collector:
        options = self.options.eval
        folder = options.out or run_folder(None, "collect", arena.name, policy.partition("@")[0])
        if folder.exists() and not folder.is_dir():
            raise UsageProblem(f"--out {folder} is a file; name a folder")
        wanted = Collection(
            environment=arena.name,
            policy=policy,
            split=options.split,
            size=size,
            count=options.tasks,
            seed=options.seed,
            config=parse_config(options.config, [options.environment])[options.environment],
            policy_options=options.policy_options,
            max_turns=options.max_turns,
        )
        self.collector = Collector(wanted, folder)
        return self.collector

    def report(self) -> int:
        """Write the data and the card, and say what came of it; the exit code."""
        collector = self.collector
        assert collector is not None
        card = collector.finish(self.keep, self.options.keep, self.model)
        _say(card, collector)
        if self.interrupted:
            warn("interrupted; the same command goes on with it")
            return INTERRUPTED
        if collector.failure is not None:
            raise CommandFailed(collector.failure)
        if not card.kept:
            raise CommandFailed("no rollout was kept" + (f": {_reasons(card)}" if card.unscored else ""))
        return 0


def _say(card: Card, collector: Collector) -> None:
    folder = collector.folder
    left = [
        f"{card.filtered} by --keep" if card.filtered else "",
        f"{card.duplicates} duplicates" if card.duplicates else "",
        f"{card.unscored.total()} without a score" if card.unscored else "",
    ]
    why = ", ".join(filter(None, left))
    before = f" ({collector.found} were there)" if collector.found else ""
    out().print(
        f"[bold]{card.kept}[/bold] of {card.played} rollouts kept{before}" + (f"; left out: {why}" if why else ""),
        soft_wrap=True,
    )
    if card.tokens:
        out().print(f"{card.tokens:,} tokens, of which {card.learnt_tokens:,} are learnt", soft_wrap=True)
    out().print(f"[dim]{SFT}, card.md and traces.jsonl are in {escaped(folder)}[/dim]", soft_wrap=True)
    out().print(f"[dim]read them:[/dim] mcpgym show {escaped(shlex.quote(str(folder)))}", soft_wrap=True)


def _reasons(card: Card) -> str:
    return ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in card.unscored.items())
