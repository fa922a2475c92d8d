"""What a training run left behind: the curves of its stages, and its certificate."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcpgym_clients.boards import read_board

METRICS = "metrics.jsonl"
CERTIFICATE = "certificate.json"
RECIPE = "recipe.json"
_SHOWN = (
    *("certified", "lines", "won_lines", "drawn_lines", "lost_lines", "unfinished_lines", "decisions", "invalid_moves"),
    *("versus_random", "versus_perfect", "optimum", "distance", "by_seat", "shortest_loss", "shortest_unfinished"),
    *("blunders", "suboptimal", "regrets", "environment", "environment_version", "config", "policy", "policy_hash"),
    *("policy_seed", "asked_twice", "mcpgym"),
)
MAX_BYTES = 64_000_000
"""A file beyond that is none of ours."""
MAX_POINTS = 2_000
"""Steps of a stage that are drawn; of more, every second, third… and the last."""


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None where there is none, or it is none."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        read = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def read_curves(path: Path) -> dict[str, list[float | None]]:
    """The columns of a ``metrics.jsonl``: name with slashes → its value at each step, None where it has none.

    Lines that are no JSON objects with a ``step`` are left out.
    """
    rows: list[dict[str, float]] = []
    try:
        with path.open("rb") as file:
            for line in file:
                try:
                    row = dict(_flat(json.loads(line)))
                except (ValueError, RecursionError):
                    continue
                if "step" in row:
                    rows.append(row)
    except OSError:
        return {}
    stride = -(-len(rows) // MAX_POINTS) or 1
    kept = rows[::stride]
    if rows and kept[-1] is not rows[-1]:
        kept.append(rows[-1])
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in kept] for name in names}


def stage_names(folder: Path, files: Sequence[Path]) -> list[str]:
    """The names of a training run's stages, in the order in which they were made."""
    return [name for name, _ in _stages(folder, files)]


def read_stages(folder: Path, files: Sequence[Path]) -> list[dict[str, Any]]:
    """The stages in that order, each with its curves."""
    return [{"name": name, "columns": read_curves(path)} for name, path in _stages(folder, files)]


def _stages(folder: Path, files: Sequence[Path]) -> list[tuple[str, Path]]:
    order = list(read_object(folder / "stages.json") or {})
    named = [("training" if path.parent == folder else path.parent.name, path) for path in files]

    def when(stage: tuple[str, Path]) -> tuple[int, float]:
        name, path = stage
        return (order.index(name) if name in order else len(order)), path.stat().st_mtime

    return sorted(named, key=when)


def certificate(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """The parts of a ``certificate.json`` that are shown; None where it is none."""
    if not isinstance(found.get("schema"), str) or not found["schema"].startswith("mcpgym.certificate/"):
        return None
    made = {name: found.get(name) for name in _SHOWN}
    for name in ("shortest_loss", "shortest_unfinished"):
        if isinstance(line := made[name], dict) and isinstance(positions := line.get("positions"), list):
            texts = [text for text in positions if isinstance(text, str)]
            made[name] = {**line, "positions": [{"text": text, "board": read_board(text)} for text in texts]}
    return made


def _flat(row: Any, prefix: str = "") -> list[tuple[str, float]]:
    made: list[tuple[str, float]] = []
    for name, value in row.items() if isinstance(row, dict) else ():
        if isinstance(value, dict):
            made += _flat(value, f"{prefix}{name}/")
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300:  # nor NaN
            made.append((prefix + name, value))
    return made
