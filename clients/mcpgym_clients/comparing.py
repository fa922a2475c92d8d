"""``mcpgym compare``: runs against each other, and whether what differs may be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from mcpgym_clients.comparison import REWARD, Compared, compare, conditions_differ, games_of, metrics_of, why_not
from mcpgym_clients.comparison_report import render, render_many
from mcpgym_clients.console import out
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.harness import apart, harness_of
from mcpgym_clients.runs import Run, load_run
from mcpgym_clients.statistics import CONFIDENCE, holm
from mcpgym_rl.files import write_atomically

SCHEMA = "mcpgym.comparison/1"
MOST = len(ascii_uppercase)
"""How many runs are compared at most: each has a letter."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What was typed."""

    paths: Sequence[Path]
    metric: str = REWARD
    force: bool = False
    bootstrap: bool = False
    json: Path | None = None


def run(options: CompareOptions) -> int:
    """Compare; 0 whether the runs differ or not.

    Raises:
        UsageProblem: there is nothing to compare, or the runs must not be compared; the message says why.
        ConfigurationError: a file is no trace file.
    """
    found = compared(options)
    if options.json is not None:
        write_atomically(options.json, found)
    out().print(render(found) if len(options.paths) == 2 else render_many(found))
    return 0


def compared(options: CompareOptions) -> dict[str, Any]:
    """The comparison as its file has it.

    Raises:
        UsageProblem, ConfigurationError: as :func:`run` does.
    """
    if not 2 <= len(options.paths) <= MOST:
        raise UsageProblem(f"name 2 to {MOST} runs: mcpgym compare RUN RUN")
    if options.json is not None and not options.json.absolute().parent.is_dir():
        raise UsageProblem(f"--json {options.json}: there is no folder {options.json.parent}")
    runs = [load_run(path) for path in options.paths]
    names = dict(zip(ascii_uppercase, runs, strict=False))
    metrics = metrics_of(runs)
    if options.metric not in metrics:
        raise UsageProblem(f"--metric {options.metric}: these runs have {', '.join(metrics)}")
    pairs = list(combinations(names, 2))
    reasons = list(dict.fromkeys(reason for a, b in pairs for reason in why_not(names[a], names[b], (a, b))))
    if reasons and not options.force:
        shown = "; ".join(reasons[:6]) + (f"; and {len(reasons) - 6} more reasons" if len(reasons) > 6 else "")
        raise UsageProblem(f"these runs must not be compared: {shown}. Compare what they have in common: --force")
    wanted = [options.metric] if len(runs) > 2 else [options.metric, *(m for m in metrics if m != options.metric)]
    games = {name: games_of(run) for name, run in names.items()}
    rows = []
    for a, b in pairs:
        for metric in wanted:
            try:
                found = compare(
                    names[a],
                    names[b],
                    metric,
                    metrics[metric],
                    CONFIDENCE,
                    (games[a], games[b]),
                    resampled=options.bootstrap,
                )
            except UsageProblem:
                if metric == options.metric:
                    raise
                continue  # a component that one of them never had
            rows.append(_row(a, b, found))
    _judge(rows, options.metric)
    found_apart = [text for a, b in pairs for text in conditions_differ(names[a], names[b], (a, b))]
    machines = {"conditions": list(dict.fromkeys(found_apart))} if found_apart else {}
    players = {name: harness_of(run.traces) for name, run in names.items()}
    told = [text for a, b in pairs if (text := apart(players[a], players[b], (a, b))) is not None]
    harness = {"harness": told} if told else {}
    return {
        "schema": SCHEMA,
        "metric": options.metric,
        "confidence": CONFIDENCE,
        "interval": "bootstrap (BCa)" if options.bootstrap else "t",
        "runs": [_about(name, run, options.metric, metrics) for name, run in names.items()],
        "comparisons": rows,
        "in_spite_of": reasons,
        **machines,
        **harness,
    }


def _about(name: str, run: Run, metric: str, metrics: dict[str, Any]) -> dict[str, Any]:
    scored = [trace for trace in run.traces if trace.scored]
    values = [value for trace in scored if (value := metrics[metric](trace)) is not None]
    first = scored[0] if scored else None
    harness = harness_of(run.traces)
    return {
        "name": name,
        "folder": str(run.folder),
        "policy": first.policy if first else None,
        "agent": None if harness is None else harness.agent,
        "agent_version": None if harness is None else harness.version,
        "model": None if harness is None else harness.model,
        "environment": first.environment if first else None,
        "environment_version": first.environment_version if first else None,
        "episodes": len(run.traces),
        "scored": len(scored),
        "mean": sum(values) / len(values) if values else None,
        "complete": (run.summary or {}).get("complete"),
        "mcpgym": run.about.get("mcpgym"),
    }


def _row(a: str, b: str, found: Compared) -> dict[str, Any]:
    difference = found.difference
    return {
        "a": a,
        "b": b,
        "metric": found.metric,
        "a_mean": difference.first,
        "b_mean": difference.second,
        "difference": difference.mean,
        "interval": difference.interval,
        "p": difference.p,
        "p_corrected": difference.p,
        "distinguishable": difference.distinguishable,
        "detectable": difference.detectable,
        "tasks_needed": difference.tasks_needed,
        "paired_by": found.paired_by,
        "n": difference.n,
        "tasks": difference.tasks,
        "differing_tasks": difference.differing,
        "left_out": list(found.left_out),
        "equal_games": found.equal_games,
        "distinct_pairs": found.distinct_pairs,
    }


def _judge(rows: list[dict[str, Any]], metric: str) -> None:
    """Correct the p-values of ``metric`` for how many pairs of runs are compared (Holm), and judge by those."""
    judged = [row for row in rows if row["metric"] == metric and row["p"] is not None]
    for row, p in zip(judged, holm([row["p"] for row in judged]), strict=True):
        row["p_corrected"] = p
        row["distinguishable"] = row["distinguishable"] and p < 1 - CONFIDENCE
