"""Checkpoints of supervised fine-tuning: one safetensors file, replaced as a whole, and the metrics beside it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mcpgym.errors import ConfigurationError
from mcpgym_rl.sft import SftConfig, SftStep

FILE, METRICS = "checkpoint.safetensors", "metrics.jsonl"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")
_RANDOM = "random"


class Checkpoint:
    """The files of a run in ``folder``. Whenever the process dies, the last whole checkpoint is there."""

    def __init__(self, folder: Path, config: SftConfig) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self._config = folder, config.model_dump_json()
        self._metrics = (folder / METRICS).open("ab", buffering=0)

    def wrote(self, step: SftStep) -> None:
        """Append a step to the metrics."""
        self._metrics.write(json.dumps(asdict(step)).encode() + b"\n")

    def save(self, step: int, trained: dict[str, Any], average: dict[str, Tensor], optimizer: Any) -> None:
        """Write everything that the rest of the run depends on."""
        os.fsync(self._metrics.fileno())
        tensors = {f"model/{name}": value.detach() for name, value in trained.items()}
        tensors |= {f"average/{name}": value for name, value in average.items()}
        for name, value in trained.items():
            tensors |= {f"{moment}/{name}": optimizer.state[value][moment] for moment in _MOMENTS}
        tensors[_RANDOM] = torch.get_rng_state()
        temporary = self.folder / f".{FILE}.{os.getpid()}"
        try:
            contiguous = {name: value.contiguous() for name, value in tensors.items()}
            save_file(contiguous, temporary, metadata={"step": str(step), "config": self._config})
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            temporary.replace(self.folder / FILE)
        finally:
            temporary.unlink(missing_ok=True)

    def load(self, trained: dict[str, Any], average: dict[str, Tensor], optimizer: Any) -> list[SftStep]:
        """Put everything back as the last checkpoint has it; the steps up to there, none where there is none.

        Raises:
            ConfigurationError: it is damaged, or belongs to another run.
        """
        path = self.folder / FILE
        steps = 0
        if path.exists():
            try:
                with safe_open(path, framework="pt") as file:
                    metadata = file.metadata() or {}
                    if metadata.get("config") != self._config:
                        raise ConfigurationError(
                            f"{path} belongs to a run with other settings; name another folder, or remove it"
                        )
                    steps = int(metadata["step"])
                    self._restore(file, trained, average, optimizer)
            except (SafetensorError, OSError, KeyError, ValueError) as error:
                raise ConfigurationError(f"{path} cannot be resumed from: {error}") from None
        return self._cut(steps)

    def _restore(self, file: Any, trained: dict[str, Any], average: dict[str, Tensor], optimizer: Any) -> None:
        held = set(file.keys())
        if held != {*self._names(trained, average), _RANDOM}:
            raise ConfigurationError(f"{self.folder / FILE} is of another model; name another folder, or remove it")
        with torch.no_grad():
            for name, value in trained.items():
                value.copy_(file.get_tensor(f"model/{name}"))
                state = {moment: file.get_tensor(f"{moment}/{name}") for moment in _MOMENTS}
                optimizer.state[value] = {moment: tensor.to(value.device) for moment, tensor in state.items()}
            for name, value in average.items():
                value.copy_(file.get_tensor(f"average/{name}"))
        torch.set_rng_state(file.get_tensor(_RANDOM))

    def _names(self, trained: dict[str, Any], average: dict[str, Tensor]) -> list[str]:
        kinds = ["model", *_MOMENTS]
        return [f"{kind}/{name}" for kind in kinds for name in trained] + [f"average/{name}" for name in average]

    def _cut(self, steps: int) -> list[SftStep]:
        """The steps up to the checkpoint; what the metrics have beyond it will be done again."""
        path = self.folder / METRICS
        lines = path.read_bytes().split(b"\n")[:steps]
        try:
            done = [SftStep(**json.loads(line)) for line in lines]
        except (ValueError, TypeError):
            done = []
        if len(done) != steps:
            raise ConfigurationError(f"{path} does not go with the checkpoint beside it; name another folder")
        os.truncate(path, sum(len(line) + 1 for line in lines))
        return done

    def close(self) -> None:
        """Close the metrics."""
        self._metrics.close()
