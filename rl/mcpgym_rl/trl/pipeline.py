"""A whole run as our own trainer's, with TRL for the reinforcement learning: in one process, or in many.

The folder is the same (see :mod:`mcpgym_rl.training.pipeline`), but ``rl/`` has TRL's checkpoints (``checkpoint-N``)
and ``traces.jsonl``, the rollouts of the last batch before a checkpoint. Started by ``accelerate launch`` or
``torchrun``, the first process does what is done once, and the others wait for it.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.training.checkpoint import State
from mcpgym_rl.training.curves import draw_curves
from mcpgym_rl.training.guards import NothingLeft
from mcpgym_rl.training.metrics import Metrics, read_metrics
from mcpgym_rl.training.models import load_model, save_model
from mcpgym_rl.training.pipeline import Pipeline
from mcpgym_rl.training.sections import Rl
from mcpgym_rl.trl.plan import planned
from mcpgym_rl.trl.recipe import TrlRecipe
from mcpgym_rl.trl.settings import grpo_config, world

Report = Callable[[str, Mapping[str, Any]], None]


class TrlPipeline(Pipeline):
    """A run of ``recipe`` (fitted to TRL) in ``folder``, begun or gone on with.

    Raises:
        ConfigurationError: the folder has a run of another recipe.
    """

    recipe: TrlRecipe

    def __init__(self, recipe: TrlRecipe, folder: Path, report: Report = lambda stage, row: None) -> None:
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # that rollout_func may change: our pin knows
        self.rank, self.processes = world()
        super().__init__(recipe, folder, report if self.rank == 0 else lambda stage, row: None)

    def _claim(self) -> None:
        if self.rank == 0:
            super()._claim()

    def _stage(self, name: str, work: Callable[[], None]) -> None:
        if self.rank == 0:
            super()._stage(name, work)
        self._wait_for(name)

    def _wait_for(self, name: str) -> None:
        """Until the first process has done the stage. Who launched them ends all when one dies."""
        while name not in self._spent():
            time.sleep(0.2)

    def _done(self, stage: str, seconds: float) -> None:
        if self.rank == 0:
            super()._done(stage, seconds)

    @property
    def _title(self) -> str:
        return f"{super()._title}, TRL"

    def _publish(self, source: Path, stages: Sequence[Path]) -> None:
        if self.rank == 0:
            super()._publish(source, stages)

    def _reinforce(self, stage: str, rl: Rl, source: Path) -> State:
        """One stage with TRL, from the model in ``source``; gone on with from TRL's last checkpoint."""
        from transformers import AutoTokenizer

        from mcpgym_rl.trl.reporting import Reporting
        from mcpgym_rl.trl.rollouts import Rollouts
        from mcpgym_rl.trl.trainer import Trainer, last_checkpoint

        if stage in self._spent():
            return State(finished="steps", cpu_seconds=self._spent()[stage])
        folder = self.folder / stage
        folder.mkdir(exist_ok=True)
        section = self.recipe.model.model_copy(update={"device": "cpu"})  # accelerate moves it
        model, chat = load_model(source, section, self.recipe.seed)
        config, sizes = grpo_config(self.recipe, rl, folder, chat.end_ids)
        name = self.environment.name
        lane = ControlLane(LocalControl(Episodes({name: self.environment})))
        rollouts = Rollouts(self.recipe, rl, self.environment, chat, lane)
        finished = "steps"
        specs = planned(self.recipe, rl, name, self.environment.size(rl.split))
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(source), local_files_only=True, trust_remote_code=False)
            try:
                trainer = Trainer(model, tokenizer, config, sizes, rollouts, specs)
            except (ValueError, ImportError, NotImplementedError, RuntimeError) as error:
                raise ConfigurationError(f"TRL refuses this run: {error}") from error
            checkpoint = last_checkpoint(folder)
            first = 0 if checkpoint is None else _step(checkpoint) // sizes.updates
            before = next((row["cpu_seconds"] for row in reversed(read_metrics(folder)) if row["step"] < first), 0.0)
            with Metrics(folder, first) if self.rank == 0 else nullcontext() as metrics:
                reporting = None if metrics is None else Reporting(
                    trainer, metrics, lambda row: self.report(stage, row), before
                )  # fmt: skip
                if reporting is not None:
                    trainer.add_callback(reporting)
                try:
                    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
                except NothingLeft as stopped:  # in every process alike
                    finished = str(stopped)
                except ImportError as error:  # for an optimizer or a kernel that [trl] names
                    raise ConfigurationError(f"TRL lacks a package for this run: {error}") from error
            self._keep(trainer, folder / "model")
        finally:
            rollouts.close()
            if self.rank == 0:
                draw_curves(folder, self._title)
        spent = 0.0 if reporting is None else reporting.cpu_seconds
        self._done(stage, spent)
        self._wait_for(stage)
        return State(finished=finished, cpu_seconds=spent)

    def _keep(self, trainer: Any, target: Path) -> None:
        """Write the trained model, adapters merged in; where weights are spread over processes, as TRL writes it."""
        if trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled:
            trainer.save_model(str(target))  # all of them take part
        elif self.rank == 0:
            save_model(trainer.accelerator.unwrap_model(trainer.model), self.folder / "initial", target)


def _step(checkpoint: Path) -> int:
    made: int = json.loads((checkpoint / "trainer_state.json").read_text("utf-8"))["global_step"]
    return made
