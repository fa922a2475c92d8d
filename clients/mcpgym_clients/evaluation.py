"""``mcpgym eval``: a policy over many episodes; ``traces.jsonl`` as they end, then ``summary.json`` and a table."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgym import __version__
from mcpgym.control import ControlPlane, LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym.registry import load_environment
from mcpgym_clients.connection import own_server, running_server
from mcpgym_clients.console import escaped, out, warn
from mcpgym_clients.failures import INTERRUPTED, CommandFailed, UsageProblem
from mcpgym_clients.files import SUMMARY, TRACES, run_folder, write_atomically
from mcpgym_clients.options import parse_config
from mcpgym_clients.progress import RunProgress
from mcpgym_clients.report import render
from mcpgym_clients.summary import Summary
from mcpgym_rl.lanes import ControlLane, Lane, McpLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policy import Policy
from mcpgym_rl.rollout import Limits
from mcpgym_rl.run import EpisodeSpec
from mcpgym_rl.run import run as run_rollouts
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceWriter


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What was typed. ``lane`` is None for the default: MCP with a server, the control plane without."""

    environment: str
    policy: str
    split: str = "test"
    tasks: int = 100
    repeats: int = 1
    seed: int = 0
    concurrency: int = 16
    out: Path | None = None
    overwrite: bool = False
    config: Sequence[str] = ()
    server: str | None = None
    secret_file: Path | None = None
    lane: str | None = None
    tool_mode: str | None = None
    think: bool = False
    temperature: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None

    @property
    def planned(self) -> int:
        """How many episodes were asked for."""
        return self.tasks * self.repeats

    @property
    def policy_options(self) -> dict[str, Any]:
        """Those of the options that are the policy's, where they were given."""
        options = {
            "mode": self.tool_mode,
            "think": self.think or None,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
        }
        return {name: value for name, value in options.items() if value is not None}

    def command(self) -> str:
        """What to type for the same run."""
        words = ["mcpgym", "eval", self.environment, "--policy", self.policy, "--split", self.split]
        words += ["-n", str(self.tasks), "-r", str(self.repeats), "--seed", str(self.seed)]
        words += ["--concurrency", str(self.concurrency)]
        for option in self.config:
            words += ["--config", option]
        for name in ("server", "lane", "tool_mode", "temperature", "max_tokens", "max_turns"):
            if (value := getattr(self, name)) is not None:
                words += [f"--{name.replace('_', '-')}", str(value)]
        words += ["--think"] if self.think else []
        return shlex.join(words)


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
        """Write and count one trace; rollouts that never began are no rollouts.

        Raises:
            CommandFailed: it cannot be written.
        """
        if trace.stop_reason == StopReason.NOT_RUN or self._unwritable is not None:
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
        """Make all rollouts: every task in order, and that as often as it is to be repeated."""
        options = self.options
        specs = [
            EpisodeSpec(
                name, split=options.split, index=index, seed=options.seed + repeat, repeat=repeat, config=dict(config)
            )
            for repeat in range(options.repeats)
            for index in range(options.tasks)
        ]
        with RunProgress(f"{name}, {policy.name}", len(specs)) as progress:

            def ended(trace: Trace) -> None:
                self.add(trace)
                progress.add(None if trace.score is None else trace.score.total)

            result = await run_rollouts(
                policy, lane, specs, concurrency=options.concurrency, limits=limits, on_trace=ended
            )
        self.failure = result.failure

    @property
    def complete(self) -> bool:
        """Whether every episode that was asked for was played to an end of its own."""
        return self.failure is None and not self.interrupted and self.summary.episodes == self.options.planned

    def finish(self) -> dict[str, Any]:
        """Write ``summary.json``; its content."""
        self._writer.close()
        options, first = self.options, self._first
        made = self.summary.as_json()
        run = {
            "environment": first.environment if first else options.environment,
            "environment_version": first.environment_version if first else None,
            "config": dict(first.config) if first else dict(parse_config(options.config, [options.environment])),
            "policy": first.policy if first else options.policy,
            "policy_options": options.policy_options,
            "split": options.split,
            "n": options.tasks,
            "repeats": options.repeats,
            "seed": options.seed,
            "planned": options.planned,
            "concurrency": options.concurrency,
            "max_turns": options.max_turns,
            "lane": lane_name(options),
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


def lane_name(options: EvalOptions) -> str:
    """How calls travel: ``mcp`` or ``control``."""
    return options.lane or ("control" if options.server is None else "mcp")


def run(options: EvalOptions) -> int:
    """Evaluate; the exit code.

    Raises:
        UsageProblem, ConfigurationError: what was asked for cannot be.
        CommandFailed: the run failed, or nothing was scored.
    """
    evaluation: Evaluation | None = None

    def begin() -> Evaluation:
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
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not cost the summary
    try:
        summary = evaluation.finish()
        out().print(render(summary))
        out().print(f"[dim]{TRACES} and {SUMMARY} are in {escaped(evaluation.folder)}[/dim]", soft_wrap=True)
        out().print(f"[dim]read them:[/dim] mcpgym show {escaped(shlex.quote(str(evaluation.folder)))}", soft_wrap=True)
    finally:
        signal.signal(signal.SIGINT, before)
    if evaluation.interrupted:
        warn(
            f"interrupted after {evaluation.summary.episodes} of {evaluation.options.planned} episodes; "
            "those that had ended are kept"
        )
        return INTERRUPTED
    if evaluation.failure is not None:
        raise CommandFailed(evaluation.failure)
    if not evaluation.summary.scored:
        reasons = "; ".join(f"{name}: {text}" for name, text in evaluation.summary.unscored_examples.items())
        raise CommandFailed(f"no episode was scored ({reasons})")
    return 0


async def _evaluate(options: EvalOptions, begin: Any) -> None:
    task = asyncio.current_task()
    assert task is not None
    with contextlib.suppress(NotImplementedError, RuntimeError):
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    async with _arena(options) as (control, lane, name, environment, config):
        await _enough_tasks(control, name, options, config)
        policy = make_policy(options.policy, environment, **options.policy_options)
        try:
            limits = Limits(max_turns=options.max_turns)
            evaluation: Evaluation = begin()
            await evaluation.play(policy, lane, name, config, limits)
        finally:
            await policy.aclose()


@contextlib.asynccontextmanager
async def _arena(
    options: EvalOptions,
) -> AsyncIterator[tuple[ControlPlane, Lane, str, Environment[Any, Any, Any] | None, Mapping[str, Any]]]:
    """Where the episodes are: control plane, lane, the environment's name, the environment if it is installed here
    (for its policies), and the configuration that each episode must ask for."""
    config: Mapping[str, Any] = parse_config(options.config, [options.environment])[options.environment]
    over_mcp = lane_name(options) == "mcp"
    if options.server is not None:
        async with running_server(options.server, options.secret_file) as control:
            local: Environment[Any, Any, Any] | None = None
            with contextlib.suppress(ConfigurationError):
                local = load_environment(options.environment, config)
            name = options.environment if local is None else local.name
            yield control, McpLane(control) if over_mcp else ControlLane(control), name, local, config
        return
    environment = load_environment(options.environment, config)
    if over_mcp:
        async with own_server(environment) as control:
            yield control, McpLane(control), environment.name, environment, {}
        return
    control = LocalControl(Episodes({environment.name: environment}))
    try:
        yield control, ControlLane(control), environment.name, environment, {}
    finally:
        await control.aclose()


async def _enough_tasks(control: ControlPlane, name: str, options: EvalOptions, config: Mapping[str, Any]) -> None:
    """Make sure that the split has as many tasks as were asked for.

    Raises:
        UsageProblem: it has fewer; the message says how many.
    """

    async def has(index: int) -> bool:
        return bool(await control.tasks(name, options.split, offset=index, limit=1, config=config))

    if await has(options.tasks - 1):
        return
    low, high = 0, options.tasks - 1  # the size lies between them, both included
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if await has(middle) else (low, middle)
    raise UsageProblem(
        f"-n {options.tasks}: the split {options.split} of {name} has {low} tasks; "
        f"take at most so many, and repeat them with -r"
    )
