"""A fine-tuning run that can be killed in a process of its own, where it prints each step."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from sft_toys import copies, tiny

from mcpgym_rl.sft import SftConfig, SftStep, fit


def go(folder: Path | None, on_step: Callable[[SftStep], None] | None = None) -> tuple[Any, list[SftStep]]:
    """The run; its model and its steps."""
    torch.set_num_threads(1)
    config = SftConfig(steps=40, batch_size=8, average=0.8, checkpoint_every=7, learning_rate=1e-2)
    model = tiny()
    return model, fit(model, iter(copies(400)), config, folder, on_step=on_step)


def told(step: SftStep) -> None:
    print(step.step, flush=True)
    time.sleep(0.05)


if __name__ == "__main__":
    go(Path(sys.argv[1]), told)
