"""How far a run is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mcpgym_clients.console import escaped, talk

LINE_SECONDS = 5.0
"""How often a run says how far it is where there is no terminal."""


class RunProgress:
    """Shows episodes as they end, on standard error."""

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total, self.count = label, total, 0
        self._rewards = 0.0
        self._scored = 0
        self._said = time.monotonic()
        self._bar: Progress | None = None
        if talk().is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TextColumn("{task.fields[reward]}", style="dim"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=talk(),
                transient=True,
            )
            self._task = self._bar.add_task(escaped(label), total=total, reward="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        else:
            self._line(f"{self.label}: {self.total} episodes")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def add(self, reward: float | None) -> None:
        """One more episode has ended, with this reward if it has one."""
        self.count += 1
        if reward is not None:
            self._rewards += reward
            self._scored += 1
        mean = f"reward {self._rewards / self._scored:.3f}" if self._scored else ""
        if self._bar is not None:
            self._bar.update(self._task, completed=self.count, reward=mean)
        elif time.monotonic() - self._said > LINE_SECONDS:
            self._said = time.monotonic()
            self._line(f"{self.label}: {self.count} of {self.total} episodes{', ' + mean if mean else ''}")

    def _line(self, text: str) -> None:
        talk().print(escaped(text), soft_wrap=True)
