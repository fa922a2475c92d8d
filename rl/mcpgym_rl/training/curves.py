"""The picture of a run: its curves over steps, with the CPU time they took."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcpgym_rl.files import replace_whole
from mcpgym_rl.training.metrics import read_metrics

FILE = "curves.png"


def draw_curves(folder: Path, title: str, stages: Sequence[Path] = ()) -> Path | None:
    """Draw ``curves.png`` in ``folder`` from its ``metrics.jsonl``, or from those of ``stages`` one after the other.

    It is replaced atomically; None without data. That of one stage alone is the one which that stage has, if it has.
    """
    drawn = stages[0] / FILE if len(stages) == 1 else None
    picture = drawn.read_bytes() if drawn is not None and drawn.exists() else _picture(title, stages or (folder,))
    if picture is None:
        return None
    replace_whole(folder / FILE, picture)
    return folder / FILE


def _picture(title: str, stages: Sequence[Path]) -> bytes | None:
    rows, begun = _joined([read_metrics(stage) for stage in stages])
    if not rows:
        return None
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(3, 2, figsize=(11, 9), sharex=True, layout="constrained")
    figure.suptitle(title)
    _plot(
        axes[0, 0],
        rows,
        "Lines of play lost",
        {"lost": "certificate/lost_lines", "unfinished": "certificate/unfinished_lines"},
    )
    outcomes = {name: f"outcomes/{name}" for name in ("win", "draw", "loss")}
    exact = {"exact wins vs random": "certificate/win"}
    _plot(axes[0, 1], rows, "Outcomes of the batch, and exact wins", {**outcomes, **exact})
    components = {name: f"components/{name}" for row in rows[:1] for name in row.get("components", {})}
    _plot(axes[1, 0], rows, "Reward and its components", {"reward": "reward", **components})
    _plot(
        axes[1, 1], rows, "Entropy (nats per token) and groups with signal", {"entropy": "entropy", "signal": "signal"}
    )
    _plot(axes[2, 0], rows, "Invalid calls", {"share of calls": "invalid"})
    _plot(axes[2, 1], rows, "Length", {"tokens per rollout": "length"})
    for axis in axes.flat:
        for step in begun[1:]:
            axis.axvline(step, color="gray", linestyle=":", linewidth=1)
    for axis in axes[2]:
        axis.set_xlabel("step")
    _time_axis(axes[0], rows)
    picture = io.BytesIO()
    try:
        figure.savefig(picture, format="png", dpi=110)
    finally:
        pyplot.close(figure)
    return picture.getvalue()


def _joined(stages: Sequence[Sequence[Mapping[str, Any]]]) -> tuple[list[Mapping[str, Any]], list[int]]:
    """The rows of all stages, their steps counted through, and the step at which each begins."""
    rows: list[Mapping[str, Any]] = []
    begun: list[int] = []
    for stage in stages:
        # A stage may end with a row that only has the certificate after its last step.
        begun.append(rows[-1]["step"] + ("reward" in rows[-1]) if rows else 0)
        rows += [{**row, "step": begun[-1] + row["step"]} for row in stage]
    return rows, begun


def _plot(axis: Any, rows: Sequence[Mapping[str, Any]], title: str, curves: Mapping[str, str]) -> None:
    axis.set_title(title, fontsize=10)
    for label, name in curves.items():
        points = [(row["step"], value) for row in rows if (value := _at(row, name)) is not None]
        if points:
            axis.plot(*zip(*points, strict=True), label=label, marker="." if len(points) < 80 else None, linewidth=1)
    axis.grid(alpha=0.3)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8)


def _time_axis(axes: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """CPU seconds along the top, at the ticks of the steps."""
    steps = [row["step"] for row in rows]
    seconds = [row.get("cpu_seconds", 0.0) for row in rows]
    for axis in axes:
        top = axis.secondary_xaxis("top")
        chosen = sorted({round(place * (len(steps) - 1) / 5) for place in range(6)})
        top.set_xticks([steps[place] for place in chosen], [f"{seconds[place]:.0f}" for place in chosen], fontsize=8)
        top.set_xlabel("CPU seconds", fontsize=8)


def _at(row: Mapping[str, Any], name: str) -> float | None:
    value: Any = row
    for part in name.split("/"):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, (int, float)) else None
