"""``mcpgym eval``: an :class:`Evaluation` of the policy, or agent, and the tasks that are asked for; then a table."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcpgym.telemetry.settings import telemetry
from mcpgym_clients.agents.shielding import shielded
from mcpgym_clients.arena import Arena, open_arena, require_tasks
from mcpgym_clients.console import escaped, out, talk, warn
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_clients.evaluation import Engine, Evaluation
from mcpgym_clients.exact_values import require_exact
from mcpgym_clients.failures import INTERRUPTED, CommandFailed
from mcpgym_clients.files import SUMMARY, TRACES, run_folder
from mcpgym_clients.report import render
from mcpgym_clients.run_file import RunFile, check_same, describe, read_run_file
from mcpgym_clients.signing import claims
from mcpgym_clients.spending import Spending
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policy import Policy
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import run as run_rollouts
from mcpgym_rl.stop_reason import StopReason


def run(options: EvalOptions) -> int:
    """Evaluate; the exit code.

    Raises:
        UsageProblem, ConfigurationError: what was asked for cannot be.
        CommandFailed: the run failed, or nothing was scored.
    """
    evaluation: Evaluation | None = None

    def begin(options: EvalOptions, spending: Spending, about: RunFile) -> Evaluation:
        nonlocal evaluation
        if options.resume is None:
            who = options.policy if options.agent is None else about.policy
            words = (options.environment, who.partition("@")[0])
            folder = run_folder(options.out, *words, overwrite=options.overwrite)
        else:
            folder, there = options.resume, read_run_file(options.resume)
            check_same(folder, there, about)
            about = replace(about, started=there.started, mcpgym=there.mcpgym, resumed=[*there.resumed, about.started])
        evaluation = Evaluation(options, folder, spending, about)
        return evaluation

    try:
        with telemetry("mcpgym-eval"):
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
    if evaluation.reopened:
        warn(f"{evaluation.reopened} episodes were lost with who held or played them, and were played again")
    if evaluation.interrupted:
        ended = evaluation.summary.episodes - evaluation.summary.stop_reasons[StopReason.CANCELLED]
        warn(f"interrupted when {ended} of {evaluation.options.planned} episodes had ended; they are kept")
        _say_how_to_go_on(evaluation)
        return INTERRUPTED
    if not evaluation.complete or set(evaluation.summary.unscored) - {"incomplete_score"}:
        _say_how_to_go_on(evaluation)
    if evaluation.failure is not None:
        raise CommandFailed(evaluation.failure)
    if evaluation.no_exact is not None and evaluation.summary.scored:
        raise CommandFailed(evaluation.no_exact)
    if not evaluation.summary.scored:
        reasons = "; ".join(f"{name}: {text}" for name, text in evaluation.summary.unscored_examples.items())
        raise CommandFailed(f"no episode was scored ({reasons})")
    return 0


def _say_how_to_go_on(evaluation: Evaluation) -> None:
    if evaluation.resumable:
        go_on = f"mcpgym eval --resume {escaped(shlex.quote(str(evaluation.folder)))}"
        out().print(f"[dim]go on with it:[/dim] {go_on}", soft_wrap=True)


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


async def _player(options: EvalOptions, arena: Arena) -> tuple[Policy, Mapping[str, Any]]:
    """Who plays, and what makes it another player than its name says."""
    if options.agent is None:
        return make_policy(options.policy, arena.environment, **options.policy_options), options.policy_options
    from mcpgym_clients.agents.making import make_agent

    made = await make_agent(
        options.agent, options.policy, arena.environment, options.agent_python, tuple(options.agent_env)
    )
    return made, {"agent_version": made.version}


@contextlib.contextmanager
def _engine(options: EvalOptions) -> Iterator[Engine]:
    """Where the episodes are played."""
    if options.engine == "here":
        yield run_rollouts
        return
    from mcpgym_clients.on_ray.cluster import connected
    from mcpgym_clients.on_ray.engine import RayRun

    with connected(options.ray_address) as ray:
        yield RayRun(ray, options)


async def _evaluate(options: EvalOptions, begin: Callable[[EvalOptions, Spending, RunFile], Evaluation]) -> None:
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(NotImplementedError, RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with open_arena(options, signed=True) as arena:
        tasks = await require_tasks(arena, options.split, options.tasks, fewer=options.fewer)
        options = replace(options, tasks=tasks)
        policy, about = await _player(options, arena)
        arena.lane.claims = claims(policy.name, {**about, "max_turns": options.max_turns})
        try:
            if options.exact:
                require_exact(policy, arena.environment)
            limits = Limits(max_turns=options.max_turns)
            if options.timeout is not None:
                limits = replace(limits, seconds=options.timeout)
            spending = Spending(policy, options.max_cost, options.max_total_tokens, options.prices)
            with contextlib.nullcontext() if options.agent is None else shielded(), _engine(options) as engine:
                evaluation = begin(options, spending, await describe(options, arena, policy))
                if evaluation.found:
                    left = options.planned - evaluation.found
                    talk().print(
                        f"{evaluation.found} of {options.planned} episodes have a score; {left} are to be played"
                    )
                await evaluation.play(policy, arena.lane, arena.name, arena.config, limits, engine)
                evaluation.reopened += getattr(engine, "moved", 0)
            await evaluation.work_out(policy, arena.environment)
        finally:
            await policy.aclose()
