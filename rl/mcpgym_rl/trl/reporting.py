"""After every batch: our row of metrics, made of what our rollouts say and what TRL says of its updates."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from mcpgym_rl.traces import Trace
from mcpgym_rl.training.metrics import Metrics
from mcpgym_rl.trl.trainer import Trainer

TRACES = "traces.jsonl"
"""The rollouts of the last batch before a checkpoint."""
_NAMES = {
    "loss": "loss",
    "entropy": "trained_entropy",
    "grad_norm": "gradient",
    "kl": "kl",
    "learning_rate": "learning_rate",
    "clip_ratio/region_mean": "clipped",
    "cispo_clip_ratio": "clipped",
    "entropy_coef": "entropy_weight",
}
"""TRL's figures that our trainer has too, and how it calls them; the others go into ``trl`` as they are."""
_OURS = ("reward", "rewards/", "completions/", "reward_std", "epoch", "num_tokens")


class Reporting(TrainerCallback):
    """Writes ``metrics.jsonl`` and TensorBoard's events as our trainer does, and the last batch's traces.

    Args:
        trainer: whose updates these are.
        metrics: where the rows go.
        report: gets each row.
        spent: CPU seconds before this process began with the stage.
    """

    def __init__(
        self, trainer: Trainer, metrics: Metrics, report: Callable[[Mapping[str, Any]], None], spent: float
    ) -> None:
        self._trainer, self._metrics, self._report = trainer, metrics, report
        self._began = time.process_time() - spent
        self.cpu_seconds = spent

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> None:
        """One more batch is learnt."""
        if logs is None or "loss" not in logs:
            return  # TRL's last words on the run as a whole
        self.cpu_seconds = time.process_time() - self._began
        values = {name: _finite(value) for name, value in logs.items()}
        ours = {own: values[name] for name, own in _NAMES.items() if name in values}
        others = {name: value for name, value in values.items() if name not in _NAMES and not name.startswith(_OURS)}
        step = state.global_step // self._trainer.sizes.updates - 1
        row = {
            "step": step,
            **self._trainer.rollouts.batch.row,
            **ours,
            "log_ratio": self._trainer.log_ratio,
            "cpu_seconds": round(self.cpu_seconds, 3),
            "trl": others,
        }
        self._metrics.write(row)
        self._report(row)

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        """A checkpoint was written."""
        write_traces(self._metrics.path.with_name(TRACES), self._trainer.rollouts.batch.traces)


def write_traces(path: Path, traces: Any) -> None:
    """Replace the file at ``path`` by one with these traces, whole."""
    from mcpgym_rl.files import replace_whole

    lines: list[Trace] = list(traces)
    if lines:
        replace_whole(path, b"".join(trace.to_json().encode() + b"\n" for trace in lines))


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
