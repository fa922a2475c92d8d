"""How the scores of a run are spread: what a histogram is drawn of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from mcpgym_clients.viewer.trace_index import Row

FEW = 12
"""Up to so many different values each has a bar of its own."""
BINS = 20
ENDS = ("win", "draw", "loss", "unfinished")


def histogram(rows: Sequence[Row]) -> dict[str, Any]:
    """The totals as bars: from ``low`` to ``high``, ``count``, the ``least`` and ``most`` total of those in it, and
    ``ends``: outcome → how many of them."""
    scored = [row for row in rows if row.total is not None and math.isfinite(row.total)]
    values = sorted({row.total for row in scored if row.total is not None})
    if len(values) <= FEW:
        bounds = [(value, value) for value in values]
    else:
        low, width = values[0], (values[-1] - values[0]) / BINS
        edges = [low + width * number for number in range(BINS)] + [values[-1]]
        bounds = list(pairwise(edges))
    bars: list[dict[str, Any]] = [{"low": low, "high": high, "count": 0, "ends": {}} for low, high in bounds]
    ends = [high for _, high in bounds]
    games = any(row.outcome is not None for row in scored)
    for row in scored:
        assert row.total is not None
        bar = bars[next(place for place, high in enumerate(ends) if row.total <= high)]
        bar["count"] += 1
        bar["least"], bar["most"] = (
            min(row.total, bar.get("least", row.total)),
            max(row.total, bar.get("most", row.total)),
        )
        if games:
            end = row.outcome if row.outcome in ENDS else "unfinished"
            bar["ends"][end] = bar["ends"].get(end, 0) + 1
    return {"exact": len(values) <= FEW, "bars": bars}


def counts(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """How many rows each filter would leave."""
    made: dict[str, dict[str, int]] = {"outcome": {}, "stop": {}, "only": {}}
    games = any(row.outcome is not None for row in rows)
    for row in rows:
        made["stop"][row.stop] = made["stop"].get(row.stop, 0) + 1
        if games and row.total is not None:
            end = row.outcome or "unfinished"
            made["outcome"][end] = made["outcome"].get(end, 0) + 1
    made["only"] = {
        "bad": sum(row.bad for row in rows),
        "unscored": sum(row.total is None for row in rows),
        "penalised": sum(row.penalised for row in rows),
        "errors": sum(row.errors > 0 for row in rows),
        "mistakes": sum(bool(row.blunders or row.missed) for row in rows),
    }
    return made
