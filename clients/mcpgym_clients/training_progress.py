"""How far a training run is: bars on a terminal, a line for every certificate and now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mcpgym_clients.console import escaped, talk

if TYPE_CHECKING:
    from mcpgym_rl.training.recipe import Recipe

LINE_SECONDS = 10.0
"""How often a run says how far it is where there is no terminal."""


class TrainingProgress:
    """Shows the steps of a run, on standard error."""

    def __init__(self, recipe: Recipe) -> None:
        self._totals = {
            "warm-up": recipe.warm_up.sft.steps if recipe.warm_up else 0,
            "rl": recipe.rl.steps if recipe.rl else 0,
            **{f"rl-{number}": rl.steps for number, rl in enumerate(recipe.then, 2)},
        }
        self._said = 0.0
        self._began: dict[str, tuple[float, int]] = {}
        self._tasks: dict[str, Any] = {}
        self._bar: Progress | None = None
        if talk().is_terminal:
            columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
            shown = (TextColumn("{task.description:8}"), *columns, TextColumn("{task.fields[told]}", style="dim"))
            self._bar = Progress(*shown, console=talk())

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def report(self, stage: str, row: Mapping[str, Any]) -> None:
        """One more step of ``stage`` is done."""
        step, total, told = row["step"], self._totals[stage], _told(row)
        certificate = row.get("certificate")
        if self._bar is not None:
            if stage not in self._tasks:
                self._tasks[stage] = self._bar.add_task(stage, total=total, told="")
            self._bar.update(self._tasks[stage], completed=step, told=escaped(told))
            if certificate is not None:
                talk().print(escaped(f"step {step}: {_certificate(certificate)}"), soft_wrap=True)
        elif certificate is not None or time.monotonic() - self._said > LINE_SECONDS:
            self._said = time.monotonic()
            parts = [f"{stage} {step}/{total}", told, self._remaining(stage, step)]
            if certificate is not None:
                parts.append(_certificate(certificate))
            talk().print(escaped(", ".join(part for part in parts if part)), soft_wrap=True)
        if why := row.get("went_back"):
            talk().print(escaped(f"step {step}: went back to the best state: {why}"), soft_wrap=True)

    def _remaining(self, stage: str, step: int) -> str:
        """How long the stage will last at most, at the pace so far."""
        now = time.monotonic()
        began, first = self._began.setdefault(stage, (now, step))
        if step <= first:
            return ""
        seconds = (now - began) / (step - first) * (self._totals[stage] - step)
        return f"at most {seconds / 60:.0f} min more" if seconds >= 90 else f"at most {seconds:.0f} s more"


def _told(row: Mapping[str, Any]) -> str:
    parts = []
    for name, form in (("reward", "{:.3f}"), ("loss", "{:.3f}"), ("entropy", "{:.3f}"), ("signal", "{:.0%}")):
        if row.get(name) is not None and not (name == "loss" and "reward" in row):
            parts.append(f"{name} {form.format(row[name])}")
    if row.get("cpu_seconds"):
        parts.append(f"{row['cpu_seconds']:.0f} CPU s")
    return ", ".join(parts)


def _certificate(found: Mapping[str, Any]) -> str:
    return (
        f"{found['lost_lines']} of {found['lines']} lines lost, {found['unfinished_lines']} unfinished, "
        f"{found['win']:.4f} wins vs random"
    )
