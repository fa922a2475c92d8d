"""Two runs side by side: what ``mcpgym compare`` says of them, how games turned out in one and in the other, and which
episodes differ most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcpgym_clients.comparing import CompareOptions, compared
from mcpgym_clients.comparison_report import notes, verdict
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.viewer.trace_index import Row

SHOWN = 1_000
"""How many pairs are listed at most, those that differ most first."""
_METRIC = ("metric", "a_mean", "b_mean", "difference", "interval", "p", "distinguishable", "n")


def compare(names: Sequence[str], files: Sequence[Path], rows: Sequence[Row], others: Sequence[Row]) -> dict[str, Any]:
    """Two runs, A and B: ``metrics`` have B's mean less A's, the reward's first; ``pairs`` are episodes of one task and
    seed that are scored in both.

    ``reasons`` say why the difference tells nothing about the policies alone; empty where it does.
    """
    made: dict[str, Any] = {"names": list(names), "metrics": [], "verdict": "", "notes": [], "reasons": []}
    try:
        found = compared(CompareOptions(list(files), force=True))
    except UsageProblem as problem:
        made["verdict"] = f"{problem}."
    else:
        first = found["comparisons"][0]
        made["metrics"] = [{name: row[name] for name in _METRIC} for row in found["comparisons"]]
        made |= {"verdict": verdict(first), "notes": notes(found, first), "reasons": found["in_spite_of"]}
        made["differs_by"] = first["difference"]
    return made | _pairs(rows, others)


def _pairs(rows: Sequence[Row], others: Sequence[Row]) -> dict[str, Any]:
    theirs = {(row.task, row.seed, row.repeat): row for row in others}
    pairs = [
        (row, other, other.total - row.total)
        for row in rows
        if (other := theirs.get((row.task, row.seed, row.repeat))) is not None
        and row.total is not None
        and other.total is not None
    ]
    outcomes: dict[str, dict[str, int]] = {}
    if any(row.outcome or other.outcome for row, other, _ in pairs):
        for row, other, _ in pairs:
            line, end = outcomes.setdefault(row.outcome or "unfinished", {}), other.outcome or "unfinished"
            line[end] = line.get(end, 0) + 1
    return {
        "better": sum(change > 0 for _, _, change in pairs),
        "worse": sum(change < 0 for _, _, change in pairs),
        "scored": len(pairs),
        "outcomes": outcomes,
        "pairs": [
            {"task": row.task, "seed": str(row.seed), **_both(row, other), "change": change}
            for row, other, change in sorted(pairs, key=lambda pair: (-abs(pair[2]), pair[0].n))[:SHOWN]
        ],
    }


def _both(row: Row, other: Row) -> Mapping[str, Any]:
    return {name: [getattr(row, name), getattr(other, name)] for name in ("n", "total", "outcome")}
