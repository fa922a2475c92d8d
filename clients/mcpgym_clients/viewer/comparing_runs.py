"""Two runs side by side, episode by episode: the same task and seed in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcpgym_clients.statistics import mean
from mcpgym_clients.viewer.trace_index import Row

SHOWN = 1_000
"""How many pairs are listed at most, those that differ most first."""
_SAME = ("environment", "version", "split", "config", "schema_hash")


def compare(
    first: Mapping[str, Any], second: Mapping[str, Any], rows: Sequence[Row], others: Sequence[Row]
) -> dict[str, Any]:
    """Two runs by their cards and rows. ``difference`` is second less first, over pairs that are scored in both.

    ``differs`` names what is not the same about the runs: then the difference says nothing about the policies alone.
    """
    theirs = {(row.task, row.seed, row.repeat): row for row in others}
    pairs = [(row, theirs[key]) for row in rows if (key := (row.task, row.seed, row.repeat)) in theirs]
    both = [(a, b, b.total - a.total) for a, b in pairs if a.total is not None and b.total is not None]
    estimate = mean([change for _, _, change in both], [a.task for a, _, _ in both]) if both else None
    table: dict[str, dict[str, int]] = {}
    if any(row.outcome for pair in pairs for row in pair):
        for a, b in pairs:
            if a.total is not None and b.total is not None:
                line = table.setdefault(a.outcome or "unfinished", {})
                line[b.outcome or "unfinished"] = line.get(b.outcome or "unfinished", 0) + 1
    both.sort(key=lambda pair: (-abs(pair[2]), pair[0].n))
    return {
        "names": [first["name"], second["name"]],
        "differs": [name for name in _SAME if first.get(name) != second.get(name)],
        "pairs": len(pairs),
        "scored": len(both),
        "only": [len(rows) - len(pairs), len(others) - len(pairs)],
        "better": sum(change > 0 for _, _, change in both),
        "worse": sum(change < 0 for _, _, change in both),
        "difference": None if estimate is None else {"mean": estimate.mean, "interval": estimate.interval},
        "distinguishable": estimate is not None and estimate.interval is not None and _apart(estimate.interval),
        "outcomes": table,
        "list": [
            {
                "task": a.task, "seed": a.seed, "n": [a.n, b.n], "total": [a.total, b.total],
                "outcome": [a.outcome, b.outcome], "change": change,
            }
            for a, b, change in both[:SHOWN]
        ],
    }  # fmt: skip


def _apart(interval: Sequence[float]) -> bool:
    """Whether an interval leaves out zero."""
    return interval[0] > 0 or interval[1] < 0
