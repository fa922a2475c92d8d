"""Two runs against each other: whether they may be compared, which episodes belong together, and what differs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.runs import Run
from mcpgym_clients.statistics import Difference, bootstrap, compare_paired, compare_unpaired
from mcpgym_clients.summary import OUTCOMES, UNFINISHED
from mcpgym_rl.traces import Trace

REWARD = "reward"
Value = Callable[[Trace], float | None]
Key = tuple[str, int]
"""An episode: its task and seed."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The difference of two runs in one metric, and what it rests on.

    ``paired_by`` is ``episode`` (task and seed), ``task``, or None where the runs have no task in common.
    ``left_out`` counts the episodes of the first and of the second run that have no partner, for their partner or they
    themselves have no value. ``equal_games`` counts the pairs in which the same happened, call by call.
    """

    metric: str
    difference: Difference
    paired_by: str | None
    left_out: tuple[int, int]
    equal_games: int
    distinct_pairs: int


def metrics_of(runs: Iterable[Run]) -> dict[str, Value]:
    """What runs can be compared in: the reward, each of its components, and for games how often they end how."""
    names: dict[str, None] = {}
    ends: set[str] = set()
    for run in runs:
        for trace in run.traces:
            if trace.score is not None and trace.scored:
                names.update(dict.fromkeys(trace.score.components))
                ends.add(trace.score.game_outcome or UNFINISHED)
    found: dict[str, Value] = {REWARD: lambda trace: None if trace.score is None else trace.score.total}
    for name in names:
        found[name] = _component(name)
    if ends & set(OUTCOMES):
        for end in (*OUTCOMES, *({UNFINISHED} & ends)):
            found[end] = _ended(end)
    return found


def _component(name: str) -> Value:
    return lambda trace: None if trace.score is None else trace.score.components.get(name)


def _ended(end: str) -> Value:
    return lambda trace: None if trace.score is None else float((trace.score.game_outcome or UNFINISHED) == end)


def why_not(first: Run, second: Run, names: tuple[str, str] = ("the first", "the second")) -> list[str]:
    """Why the scores of two runs, which are called ``names``, must not be compared; empty where they may."""
    a, b = names
    reasons = []
    for label, field in (
        ("environment", "environment"),
        ("version of the environment", "environment_version"),
        ("tools' schema hash", "schema_hash"),
    ):
        one, other = _all_of(first, field), _all_of(second, field)
        if one != other or len(one) > 1:
            reasons.append(f"the {label} is {_few(one)} in {a} and {_few(other)} in {b}")
    reasons += [_configs_differ(first, second, names)]
    for name, run in zip(names, (first, second), strict=True):
        several = _all_of(run, "policy")
        reasons += [f"{name} has traces of several policies: {_few(several)}" if len(several) > 1 else ""]
    here, there = first.about, second.about
    if "max_turns" in here and "max_turns" in there and here["max_turns"] != there["max_turns"]:
        turns = [str(value["max_turns"] or "the environment's own") for value in (here, there)]
        reasons.append(f"the limit on turns is {turns[0]} in {a} and {turns[1]} in {b}")
    reasons += [_tasks_differ(first, second, names)]
    return [reason for reason in reasons if reason]


def _all_of(run: Run, name: str) -> set[str]:
    """All values of a field; rollouts that came to no episode have none."""
    return {value for trace in run.traces if (value := getattr(trace, name))}


def _few(values: set[str]) -> str:
    shown = sorted(value if len(value) <= 40 else f"{value[:12]}…" for value in values)
    return " and ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "") if shown else "unknown"


def _configs_differ(first: Run, second: Run, names: tuple[str, str]) -> str:
    configs = [
        {json.dumps(trace.config, sort_keys=True): trace.config for trace in run.traces if trace.schema_hash}
        for run in (first, second)
    ]
    if configs[0].keys() == configs[1].keys() and len(configs[0]) <= 1:
        return ""
    if max(map(len, configs)) > 1:
        return "a run has episodes of several configurations"
    one, other = (next(iter(found.values()), {}) for found in configs)
    options = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    a, b = names
    changes = [f"{name} is {_value(one, name)} in {a} and {_value(other, name)} in {b}" for name in options[:5]]
    return f"the configuration differs: {'; '.join(changes)}" if changes else "one configuration is not known"


def conditions_differ(first: Run, second: Run, names: tuple[str, str]) -> list[str]:
    """What differs between the machines that two runs ran under, as their environment says it; empty where nothing.

    No reason not to compare them, but one to think of: another isolation or another numpy may change an answer.
    """
    a, b = names
    told = [_conditions(run) for run in (first, second)]
    one, other = told
    return [
        f"{name} is {_several(one.get(name))} in {a} and {_several(other.get(name))} in {b}"
        for name in {**one, **other}
        if one.get(name) != other.get(name) or len(one.get(name, ())) > 1
    ]


def _conditions(run: Run) -> dict[str, list[str]]:
    """Each condition's values in the episodes of a run, as JSON."""
    found: dict[str, set[str]] = {}
    seen: set[str] = set()
    for trace in run.traces:
        whole = json.dumps(trace.conditions, sort_keys=True)
        if trace.schema_hash and whole not in seen:
            seen.add(whole)
            for name, value in trace.conditions.items():
                found.setdefault(name, set()).add(json.dumps(value, sort_keys=True))
    return {name: sorted(values) for name, values in found.items()}


def _several(values: Sequence[str] | None) -> str:
    if not values:
        return "not known"
    return " or ".join(value[:80] for value in values[:3]) + (" or another" if len(values) > 3 else "")


def _value(config: Mapping[str, Any], name: str) -> str:
    return json.dumps(config[name])[:60] if name in config else "not set"


def _tasks_differ(first: Run, second: Run, names: tuple[str, str]) -> str:
    one, other = _keys(first.traces), _keys(second.traces)
    if one == other:
        return ""
    a, b = names
    tasks, others = {task for task, _ in one}, {task for task, _ in other}
    if tasks != others:
        return f"the tasks differ: {a} has {len(tasks)} and {b} {len(others)}, with {len(tasks & others)} in common"
    seeds, there = {seed for _, seed in one}, {seed for _, seed in other}
    if seeds != there:
        return f"the seeds differ: {a} has {_range(seeds)} and {b} {_range(there)}"
    return f"the episodes differ: {a} has {len(one)} and {b} {len(other)}, with {len(one & other)} in common"


def _range(seeds: set[int]) -> str:
    return str(min(seeds)) if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)}"


def _keys(traces: Iterable[Trace]) -> set[Key]:
    return {(trace.task, trace.seed) for trace in traces}


def games_of(run: Run) -> dict[Key, str]:
    """What happened in each scored episode, as a fingerprint."""
    return {(trace.task, trace.seed): trace.fingerprint for trace in run.traces if trace.scored}


def compare(
    first: Run,
    second: Run,
    metric: str,
    value: Value,
    confidence: float,
    games: tuple[Mapping[Key, str], Mapping[Key, str]],
    *,
    resampled: bool = False,
) -> Compared:
    """The second run against the first: paired by task and seed where they have such episodes in common.

    Args:
        first: a run.
        second: the other.
        metric: what is compared.
        value: its value of a trace; None where it has none.
        confidence: of the interval.
        games: what :func:`games_of` says of each run.
        resampled: take the bootstrap's interval, not Student's.

    Raises:
        UsageProblem: a run has no value at all, or no pairs for the bootstrap.
    """
    one, other = _values(first, value), _values(second, value)
    for run, found in ((first, one), (second, other)):
        if not found:
            raise UsageProblem(f"{run.folder} has no episode with a value of {metric}")
    common = [key for key in one if key in other]
    left_out = _episodes(one) - _episodes(one, common), _episodes(other) - _episodes(other, common)
    paired_by: str | None = "episode"
    pairs: list[tuple[float, float, Hashable]] = [(_mean(one[key]), _mean(other[key]), key[0]) for key in common]
    if not pairs:
        paired_by = "task"
        by_task, others = _by_task(one), _by_task(other)
        pairs = [(_mean(by_task[task]), _mean(others[task]), task) for task in by_task if task in others]
        left_out = (
            sum(len(found) for task, found in by_task.items() if task not in others),
            sum(len(found) for task, found in others.items() if task not in by_task),
        )
    if pairs:
        before, after, tasks = zip(*pairs, strict=True)
        difference = compare_paired(before, after, tasks, confidence)
        if resampled:
            apart = [b - a for a, b in zip(before, after, strict=True)]
            drawn = bootstrap(apart, tasks, confidence)
            difference = difference.within(drawn.low, drawn.high)
    else:
        if resampled:
            raise UsageProblem("--bootstrap draws pairs, and these runs have no task in common")
        paired_by, left_out = None, (0, 0)
        (here, of), (there, of_those) = _flat(one), _flat(other)
        difference = compare_unpaired(here, of, there, of_those, confidence)
    played = [(games[0][key], games[1][key]) for key in common]
    equal = sum(here == there for here, there in played)
    return Compared(metric, difference, paired_by, left_out, equal, len(set(played)))


def _values(run: Run, value: Value) -> dict[Key, list[float]]:
    """The values of each episode; more than one where it was played more than once."""
    found: dict[Key, list[float]] = {}
    for trace in run.traces:
        if trace.scored and (one := value(trace)) is not None:
            found.setdefault((trace.task, trace.seed), []).append(one)
    return found


def _episodes(values: Mapping[Key, Sequence[float]], keys: Iterable[Key] | None = None) -> int:
    return sum(len(values[key]) for key in (values if keys is None else keys))


def _by_task(values: Mapping[Key, Sequence[float]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for (task, _), those in values.items():
        found.setdefault(task, []).extend(those)
    return found


def _flat(values: Mapping[Key, Sequence[float]]) -> tuple[list[float], list[str]]:
    rows = [(one, task) for (task, _), those in values.items() for one in those]
    return [one for one, _ in rows], [task for _, task in rows]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
