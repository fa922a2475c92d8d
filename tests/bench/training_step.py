"""One training step, ours, TRL's, and TRL's over our rollouts, in turn: the same games, the same model at first."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.trl_rollouts import RolloutsSide
from tests.bench.trl_side import Played, TrlSide, TrlStep
from tests.bench.warmed_up import NAME, load

from mcpgym import load_environment
from mcpgym.control import Call, CallResult, LocalControl
from mcpgym.episodes import Episodes
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.run import EpisodeSpec
from mcpgym_rl.training.curriculum import Lines, plan_batch
from mcpgym_rl.training.recipe import make_recipe
from mcpgym_rl.training.sections import Rl
from mcpgym_rl.training.trainer import Setup, Trainer

WORTH = {"win": 1.0, "draw": 0.5, "loss": -0.5, "unfinished": -0.5}


@dataclass(frozen=True)
class OurStep:
    """CPU seconds of one step and of its part that plays, how many calls were answered, and the row it wrote."""

    total: float
    playing: float
    calls: int
    row: Mapping[str, Any]


@dataclass(frozen=True)
class RolloutsStep:
    """CPU seconds of one step of TRL over our rollouts and of its part that plays, trained tokens, turns a game."""

    total: float
    playing: float
    tokens: int
    turns: float


@dataclass(frozen=True)
class Sides:
    """The steps of each side, the first left out; ``everything`` is our step when each sampled token is trained on,
    ``rollouts`` is TRL over our rollouts."""

    ours: Sequence[OurStep]
    everything: Sequence[OurStep]
    theirs: Sequence[TrlStep]
    rollouts: Sequence[RolloutsStep]
    played: Played


class Counting(LocalControl):
    """A control plane in process that counts calls."""

    calls = 0

    async def step(self, calls: Sequence[Call]) -> list[CallResult]:
        """Answer the calls."""
        self.calls += len(calls)
        return await super().step(calls)


class OurSide:
    """The trainer that ``mcpgym train`` runs, held after each of its steps. It lives in a thread of its own, which
    waits while it is not its turn."""

    def __init__(self, path: Path, folder: Path, settings: Mapping[str, Any], steps: int) -> None:
        recipe = make_recipe({"environment": NAME, "rl": {**settings, "steps": steps, "checkpoint_every": steps + 1}})
        assert recipe.rl is not None
        self.rl: Rl = recipe.rl
        environment = load_environment(NAME)
        model, chat = load(path)
        self._control = Counting(Episodes({NAME: environment}))
        folder.mkdir()
        setup = Setup(recipe, model, chat, environment, ControlLane(self._control), folder)
        self._trainer = Trainer(setup, self._held)
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._row: Mapping[str, Any] | None = None
        self._error: BaseException | None = None
        self.steps: list[OurStep] = []

    def step(self) -> None:
        """One step."""
        if not self.steps:
            self._thread.start()
        self._row, calls = None, self._control.calls
        started = time.process_time()
        self._go.release()
        self._done.acquire()
        total = time.process_time() - started
        if self._row is None:
            raise AssertionError("our training ended early") from self._error
        self.steps.append(OurStep(total, self._row["sampling_seconds"], self._control.calls - calls, self._row))

    def _train(self) -> None:
        self._go.acquire()
        try:
            asyncio.run(self._trainer.train())
        except BaseException as error:
            self._error = error
        self._done.release()

    def _held(self, row: Mapping[str, Any]) -> None:
        self._row = row
        self._done.release()
        self._go.acquire()


def settings(groups: int, size: int) -> dict[str, Any]:
    """The recipe's table ``rl`` of both sides."""
    return {
        "groups": groups,
        "group_size": size,
        "learning_rate": 1e-4,
        "schedule": "constant",
        "certify": False,
        "rewards": {"game_outcome": WORTH},
    }


def specs(rl: Rl, step: int) -> list[EpisodeSpec]:
    """The episodes of a step."""
    size = load_environment(NAME).size(rl.split)
    return plan_batch(rl, NAME, {}, size, 0, step, Lines()).specs


def compare(path: Path, folder: Path, groups: int, size: int, rounds: int) -> Sides:
    """``rounds`` steps of each side in turn, and one before them that is not counted."""
    rl = settings(groups, size)
    ours = OurSide(path, folder / "ours", rl, rounds + 1)
    all_of_it = {**rl, "advantage": "rollout", "train_without_signal": True}
    everything = OurSide(path, folder / "everything", all_of_it, rounds + 1)
    firsts = [specs(ours.rl, step)[::size] for step in range(rounds + 1)]  # TRL wants its tasks beforehand
    rollouts = RolloutsSide(path, folder / "rollouts", rl, rounds + 1)
    theirs = TrlSide(path, folder / "trl", ours.rl, firsts)

    def before_step() -> None:
        ours.step()
        everything.step()
        rollouts.step()

    theirs.run(before_step)
    steps = [
        RolloutsStep(total, row["sampling_seconds"], tokens, row["turns"])
        for total, row, tokens in zip(rollouts.seconds, rollouts.rows, rollouts.tokens, strict=True)
    ]
    return Sides(ours.steps[1:], everything.steps[1:], theirs.steps[1:], steps[1:], theirs.played)
