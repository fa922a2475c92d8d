"""``mcpgym sft``: supervised fine-tuning from a TOML file."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from mcpgym_clients.console import escaped, out, talk, warn
from mcpgym_clients.failures import INTERRUPTED, CommandFailed
from mcpgym_clients.training import EXTRA
from mcpgym_rl.sft import SftStep
from mcpgym_rl.sft_run import SftRun, read_sft_run
from mcpgym_rl.sft_run import run as fine_tune

LINES = 20
"""How many lines a run prints where there is no terminal."""


def run(config: Path) -> int:
    """Fine-tune, or go on with it; the exit code.

    Raises:
        ConfigurationError: what was asked for cannot be.
        CommandFailed: the loss is not finite, or PyTorch is not installed.
    """
    wanted = read_sft_run(config)
    try:
        import torch
        import transformers  # noqa: F401
    except ModuleNotFoundError as error:
        raise CommandFailed(f"{EXTRA} ({error.name} is missing)") from None
    torch.set_num_threads(wanted.threads)
    try:
        with _Told(wanted) as told:
            model = fine_tune(wanted, told.step)
    except KeyboardInterrupt:
        warn("interrupted; the same command goes on from the last checkpoint")
        return INTERRUPTED
    except FloatingPointError as error:
        raise CommandFailed(str(error)) from None
    last = "" if told.last is None else f"loss {told.last.loss:.4f} after {told.last.step} steps: "
    out().print(f"{last}{escaped(model)}", soft_wrap=True)
    out().print(f"[dim]use it as a policy:[/dim] {escaped(shlex.quote(f'local:{model}'))}", soft_wrap=True)
    return 0


class _Told:
    """Shows the steps: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, wanted: SftRun) -> None:
        self.last: SftStep | None = None
        self._steps = wanted.sft.steps
        self._bar: Progress | None = None
        if talk().is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TextColumn("{task.fields[loss]}", style="dim"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                console=talk(),
                transient=True,
            )
            self._task = self._bar.add_task("fine-tuning", total=self._steps, loss="")

    def __enter__(self) -> _Told:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, step: SftStep) -> None:
        """One more step."""
        self.last = step
        if self._bar is not None:
            self._bar.update(self._task, completed=step.step, loss=f"loss {step.loss:.4f}")
        elif step.step % max(1, self._steps // LINES) == 0 or step.step == 1:
            talk().print(f"step {step.step} of {self._steps}, loss {step.loss:.4f}", soft_wrap=True)
