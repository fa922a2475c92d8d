"""The picture of a server at work, as wide as the terminal allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mcpgym_clients.console import clean, one_line

Row = Mapping[str, Any]
WIDE, MIDDLING = 78, 48
"""Widths from which all columns are shown, and from which most are."""


def picture(figures: Row, server: str, width: int, trouble: str | None = None) -> RenderableType:
    """``figures`` as :func:`~mcpgym_clients.top.figures.between` gives them; ``trouble`` is said below them."""
    lines: list[RenderableType] = [_head(figures, server, width), _table(figures, width)]
    if trouble is not None:
        lines.append(Text(one_line(trouble), style="yellow"))
    return Group(*lines)


def _head(figures: Row, server: str, width: int) -> Text:
    parts = [
        f"mcpgym {clean(figures['version'])} at {one_line(server)}",
        f"{figures['episodes_live']:,} live",
        f"{_rate(figures['calls_per_second'])} calls/s",
        f"memory {_size(figures['memory_bytes'])}",
        f"CPU {figures['cpu_share']:.0%}",
        f"loop lag {duration(figures['event_loop_lag_seconds'])}, "
        f"worst {duration(figures['event_loop_lag_worst_seconds'])}",
    ]
    lagging = figures["event_loop_lag_worst_seconds"] > 1.0
    text = Text("\n".join(parts) if width < MIDDLING else " · ".join(parts))
    if lagging:
        text.append("\nthe event loop stood still for over a second within the last minute", style="yellow")
    return text


def _table(figures: Row, width: int) -> Table:
    columns: list[tuple[str, Callable[[Row], str], int]] = [
        ("environment", lambda row: one_line(row["environment"]), 0),
        ("live", lambda row: f"{row['live']:,}", 0),
        ("calls/s", lambda row: _rate(row["calls_per_second"]), 0),
        ("p50", lambda row: _latency(row, "p50_seconds"), MIDDLING),
        ("p99", lambda row: _latency(row, "p99_seconds"), 0),
        ("errors/s", lambda row: _rate(row["errors_per_second"]), MIDDLING),
        ("calls", lambda row: f"{row['calls']:,}", WIDE),
        ("errors", lambda row: f"{row['errors']:,}", WIDE),
    ]
    shown = [column for column in columns if width >= column[2]]
    table = Table(box=None, pad_edge=False, padding=(0, 2 if width >= MIDDLING else 1, 0, 0), expand=False)
    for heading, _, _ in shown:
        first = heading == "environment"
        table.add_column(
            heading,
            justify="left" if first else "right",
            no_wrap=True,
            overflow="ellipsis",
            min_width=4 if first else 1,
        )
    for row in figures["environments"]:
        style = "red" if row["errors_per_second"] else None if row["live"] or row["calls_per_second"] else "dim"
        table.add_row(*(Text(read(row)) for _, read, _ in shown), style=style)
    return table


def _latency(row: Row, name: str) -> str:
    """Of the calls in the window; where there were none, of all since the start, in brackets."""
    if row[name] is not None:
        return duration(row[name])
    return "–" if row[f"{name}_since_start"] is None else f"({duration(row[f'{name}_since_start'])})"


def duration(seconds: float) -> str:
    """``0.00042`` as ``420 µs``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.0f} µs"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"
