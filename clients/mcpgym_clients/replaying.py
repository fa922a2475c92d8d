"""``mcpgym replay``: does the world still do what the traces say? Every recorded turn again, on a fresh episode."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpgym.control import ControlPlane, LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.registry import configure
from mcpgym_clients.connection import own_server, running_server
from mcpgym_clients.console import escaped, out, warn
from mcpgym_clients.failures import FAILURE, CommandFailed, UsageProblem
from mcpgym_clients.files import TRACES, require_place
from mcpgym_clients.progress import RunProgress
from mcpgym_clients.recorded_environments import recorded_environments, refuse_what_reaches_out
from mcpgym_clients.replay_report import Results
from mcpgym_clients.runs import find_runs, load_run
from mcpgym_rl.files import write_atomically
from mcpgym_rl.lanes import ControlLane, Lane, McpLane
from mcpgym_rl.replay import Same, byte_for_byte, replay, rule_of
from mcpgym_rl.traces import Trace

Environments = Mapping[str, Environment[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What was typed. ``lane`` is None for the default: MCP with a server, the control plane without."""

    paths: Sequence[Path]
    index: int | None = None
    environments: Sequence[str] = ()
    server: str | None = None
    secret_file: Path | None = None
    lane: str | None = None
    score_tolerance: float = 0.0
    concurrency: int = 16
    trust: bool = False
    json: Path | None = None


@dataclass(slots=True)
class Recorded:
    """The traces to replay, with the file of each and its place there."""

    traces: list[Trace] = field(default_factory=list)
    places: list[tuple[Path, int]] = field(default_factory=list)

    @property
    def versions(self) -> dict[str, list[str]]:
        """Of each environment, the versions that the traces were recorded with."""
        found: dict[str, set[str]] = defaultdict(set)
        for trace in self.traces:
            found[trace.environment].add(trace.environment_version)
        return {name: sorted(filter(None, versions)) for name, versions in sorted(found.items())}


def run(options: ReplayOptions) -> int:
    """Replay; 0 when everything came back as it was, else 1.

    Raises:
        UsageProblem, ConfigurationError: what was asked for cannot be.
        CommandFailed: there was nothing in the traces that could be compared.
    """
    if not math.isfinite(options.score_tolerance):
        raise UsageProblem("--score-tolerance must be a number; leave it out for exact scores")
    if options.json is not None:
        require_place("--json", options.json, "replay.json")
    recorded = _read(options)
    results = asyncio.run(_replay(options, recorded))
    if options.json is not None:
        write_atomically(options.json, results.as_json())
    out().print(results.render())
    if options.json is not None:
        out().print(f"[dim]written to {escaped(options.json)}[/dim]", soft_wrap=True)
    if not results.observations and not results.differing:
        raise CommandFailed("nothing was compared: none of these rollouts opened an episode")
    return FAILURE if results.differing else 0


def _read(options: ReplayOptions) -> Recorded:
    found = Recorded()
    runs = find_runs(options.paths)
    if not runs:
        raise UsageProblem(f"there is no {TRACES} in or below {', '.join(map(str, options.paths))}")
    for path in runs:
        loaded = load_run(path)
        if loaded.torn:
            warn(loaded.torn)
        found.traces += loaded.traces
        found.places += [(path, place) for place in range(len(loaded.traces))]
    if not found.traces:
        raise UsageProblem("there is no whole trace in there")
    if options.index is not None:
        if len(runs) > 1:
            raise UsageProblem(f"--index {options.index}: of which run? There are {len(runs)}; name one")
        have = len(found.traces)
        if not -have <= options.index < have:
            raise UsageProblem(f"--index {options.index}: there are {have} traces, 0 to {have - 1}")
        found = Recorded([found.traces[options.index]], [found.places[options.index]])
    return found


async def _replay(options: ReplayOptions, recorded: Recorded) -> Results:
    results = Results(recorded.places, options.score_tolerance)
    async with _arena(options, recorded, results) as (lane, rule):
        what = (
            next(iter(recorded.versions)) if len(recorded.versions) == 1 else f"{len(recorded.versions)} environments"
        )
        with RunProgress(f"replay of {what}", len(recorded.traces)) as progress:
            replays = replay(
                recorded.traces,
                lane,
                rule=rule,
                score_tolerance=options.score_tolerance,
                concurrency=options.concurrency,
            )
            async with contextlib.aclosing(replays):
                async for one in replays:
                    results.add(one)
                    progress.add(None)
    return results


@contextlib.asynccontextmanager
async def _arena(
    options: ReplayOptions, recorded: Recorded, results: Results
) -> AsyncIterator[tuple[Lane, Callable[[Trace], Same]]]:
    """Where the replays are played, and by which rule each is compared; on leaving it is closed.

    Raises:
        ConfigurationError: an environment of the traces is not there.
    """
    names = list(recorded.versions)
    lane_name = options.lane or ("control" if options.server is None else "mcp")
    async with contextlib.AsyncExitStack() as stack:
        control: ControlPlane
        local = recorded_environments(names, options.environments, optional=options.server is not None)
        if not options.trust:
            refuse_what_reaches_out(local, recorded.traces)
        if options.server is not None:
            control = await stack.enter_async_context(running_server(options.server, options.secret_file))
            served = {info.name: (info.version, info.reproducible) for info in await control.environments()}
            if missing := [name for name in names if name not in served]:
                raise UnknownNameError(f"environment at {options.server}", missing[0], served)
        else:
            served = {name: (made.version, made.reproducible) for name, made in local.items()}
            if lane_name == "mcp":
                control = await stack.enter_async_context(own_server(*local.values()))
            else:
                control = LocalControl(Episodes(local))
        _tell_versions(recorded.versions, served, local, results)
        lane = McpLane(control) if lane_name == "mcp" else ControlLane(control)
        stack.push_async_callback(lane.aclose)
        yield lane, _rules(served, local)


def _tell_versions(
    versions: Mapping[str, Sequence[str]],
    served: Mapping[str, tuple[str, bool]],
    local: Environments,
    results: Results,
) -> None:
    """Say first what explains differences: another version, or an environment that cannot be exact."""
    for name, recorded in versions.items():
        here, reproducible = served[name]
        results.environments[name] = {"recorded": list(recorded), "replayed": here, "reproducible": reproducible}
        if others := [version for version in recorded if version != here]:
            warn(f"recorded with version {', '.join(others)} of {name}; what replays is version {here}")
        if not reproducible:
            known = name in local
            how = "its own rule says which texts count as the same" if known else "its own rule is not installed here"
            warn(f"{name} says that it cannot give the same bytes twice; {how}")


def _rules(served: Mapping[str, tuple[str, bool]], local: Environments) -> Callable[[Trace], Same]:
    """By which rule a trace is compared: its environment's, under the trace's configuration."""

    def rule(trace: Trace) -> Same:
        _, reproducible = served[trace.environment]
        made = local.get(trace.environment)
        if reproducible or made is None or made.reproducible:
            return byte_for_byte
        with contextlib.suppress(ConfigurationError, TypeError):  # then the episode cannot be opened either
            made = configure(type(made), trace.config)
        return rule_of(made)

    return rule
