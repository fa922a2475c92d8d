"""A fine-tuning run in a process of its own, to be killed: prints each step, and saves the weights at the end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from safetensors.torch import save_file
from test_sft import copies, tiny

from mcpgym_rl.sft import SftConfig, SftStep, fit


def main(folder: str, pause: str, streamed: str) -> None:
    torch.set_num_threads(1)
    config = SftConfig(steps=40, batch_size=8, average=0.8, checkpoint_every=7, learning_rate=1e-2)
    games = copies(100)
    model = tiny()

    def told(step: SftStep) -> None:
        print(step.step, flush=True)
        time.sleep(float(pause))

    fit(model, iter(games * 4) if streamed == "streamed" else games, config, Path(folder), on_step=told)
    save_file(
        {name: value.detach().clone() for name, value in model.named_parameters()}, Path(folder) / "end.safetensors"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
