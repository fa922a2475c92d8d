"""A third side of the training benchmark: TRL's ``GRPOTrainer`` over our rollouts, as ``mcpgym train --engine trl`` is.

Set up in its favour as the other TRL side is: the same parts of a batch, no checkpoints, no gradient checkpointing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.bench.trl_side import MICRO_BATCH
from tests.bench.warmed_up import NAME, load
from transformers import AutoTokenizer, TrainerCallback

from mcpgym import load_environment
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.trl.plan import planned
from mcpgym_rl.trl.recipe import make_trl_recipe
from mcpgym_rl.trl.rollouts import Rollouts
from mcpgym_rl.trl.settings import grpo_config
from mcpgym_rl.trl.trainer import Trainer


class RolloutsSide:
    """A trainer held after each of its steps, in a thread of its own; ``seconds`` are each step's CPU seconds."""

    def __init__(self, path: Path, folder: Path, settings: Mapping[str, Any], steps: int) -> None:
        games = settings["groups"] * settings["group_size"]
        rl = {**settings, "steps": steps, "checkpoint_every": steps + 1}
        own = {"per_device_train_batch_size": min(games, MICRO_BATCH)}
        recipe = make_trl_recipe({"environment": NAME, "rl": rl, "trl": own})
        assert recipe.rl is not None
        environment = load_environment(NAME)
        model, chat = load(path)
        config, sizes = grpo_config(recipe, recipe.rl, folder, chat.end_ids)
        lane = ControlLane(LocalControl(Episodes({NAME: environment})))
        self.rollouts = Rollouts(recipe, recipe.rl, environment, chat, lane)
        specs = planned(recipe, recipe.rl, NAME, environment.size(recipe.rl.split))
        tokenizer = AutoTokenizer.from_pretrained(path)
        self.trainer = Trainer(model, tokenizer, config, sizes, self.rollouts, specs)
        self.trainer.add_callback(_Held(self))
        self.go, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._error: BaseException | None = None
        self.seconds: list[float] = []
        self.rows: list[Mapping[str, Any]] = []
        self.tokens: list[int] = []

    def step(self) -> None:
        """One step."""
        if not self.seconds:
            self._thread.start()
        started = time.process_time()
        self.go.release()
        self.done.acquire()
        self.seconds.append(time.process_time() - started)
        if self._error is not None:
            raise AssertionError("TRL's training over our rollouts ended early") from self._error
        self.rows.append(self.rollouts.batch.row)
        self.tokens.append(sum(sum(row[2]) for row in self._rows()))

    def _rows(self) -> list[Any]:
        from mcpgym_rl.trl.rollouts import as_row

        return [as_row(trace, 0, known=trace.scored)[0] for trace in self.rollouts.batch.traces]

    def _train(self) -> None:
        self.go.acquire()
        try:
            self.trainer.train()
        except BaseException as error:
            self._error = error
        self.done.release()


class _Held(TrainerCallback):
    """Waits after each step but the last, which ends the training."""

    def __init__(self, side: RolloutsSide) -> None:
        self._side = side

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        if state.global_step < state.max_steps:
            self._side.done.release()
            self._side.go.acquire()
