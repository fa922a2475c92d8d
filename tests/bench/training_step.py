"""One training step, ours and TRL's in turn: the same games to play, the same model to begin with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.trl_side import Played, TrlSide, TrlStep
from tests.bench.warmed_up import NAME, load

from mcpgym import load_environment
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.traces import Trace
from mcpgym_rl.training.curriculum import Lines, Plan, plan_batch
from mcpgym_rl.training.recipe import Rl, make_recipe
from mcpgym_rl.training.rewarding import reward_of
from mcpgym_rl.training.trainer import Setup, Trainer

WORTH = {"win": 1.0, "draw": 0.5, "loss": -0.5, "unfinished": -0.5}


@dataclass(frozen=True)
class OurStep:
    """CPU seconds of one step, and of its part that plays; what was sampled, and what was trained on."""

    total: float
    playing: float
    tokens: int
    turns: int
    trained: int


@dataclass(frozen=True)
class Sides:
    """The steps of each side, the first left out; ``everything`` is our step when each sampled token is trained on."""

    ours: Sequence[OurStep]
    everything: Sequence[OurStep]
    theirs: Sequence[TrlStep]
    played: Played
    traces: Sequence[Trace]


class OurSide:
    """The trainer that ``mcpgym train`` runs, step by step, without certificates and checkpoints."""

    def __init__(self, path: Path, folder: Path, rl: dict[str, Any]) -> None:
        recipe = make_recipe({"environment": NAME, "rl": rl})
        assert recipe.rl is not None
        self.rl: Rl = recipe.rl
        environment = load_environment(NAME)
        model, chat = load(path)
        lane = ControlLane(LocalControl(Episodes({NAME: environment})))
        self.trainer = Trainer(Setup(recipe, model, chat, environment, lane, folder))
        self.steps: list[OurStep] = []
        self.traces: list[Trace] = []

    def plan(self, step: int) -> Plan:
        """The episodes of a step."""
        return plan_batch(self.rl, NAME, {}, self.trainer.size, self.trainer.setup.recipe.seed, step, Lines())

    def step(self) -> None:
        """Play a batch and learn from it."""
        asyncio.run(self._step())

    async def _step(self) -> None:
        started = time.process_time()
        plan, traces = await self.trainer._sample()
        played = time.process_time()
        rewards = [reward_of(trace, self.rl.rewards) for trace in traces]
        done = await self.trainer._learn(traces, rewards, plan.groups)
        total = time.process_time() - started
        self.trainer.state.step += 1
        tokens = sum(sum(trace.tokens.mask) for trace in traces if trace.tokens is not None)
        turns = sum(trace.turns for trace in traces)
        self.steps.append(OurStep(total, played - started, tokens, turns, done.tokens))
        self.traces += traces


def compare(path: Path, folder: Path, groups: int, size: int, rounds: int) -> Sides:
    """``rounds`` steps of each side in turn, and one before them that is not counted."""
    rl = {
        "groups": groups,
        "group_size": size,
        "learning_rate": 1e-4,
        "certify": False,
        "rewards": {"game_outcome": WORTH},
    }
    ours = OurSide(path, folder / "ours", rl)
    everything = OurSide(path, folder / "everything", {**rl, "advantage": "rollout", "train_without_signal": True})
    plans = [ours.plan(step).specs[::size] for step in range(rounds + 1)]  # TRL wants its tasks beforehand
    theirs = TrlSide(path, folder / "trl", ours.rl, plans)

    def before_step() -> None:
        ours.step()
        everything.step()

    theirs.run(before_step)
    traces = ours.traces[groups * size :]
    return Sides(ours.steps[1:], everything.steps[1:], theirs.steps[1:], theirs.played, traces)
