"""A whole training run in one folder: a new model, its warm-up, reinforcement learning, the certificate.

Each stage leaves what it made before the next begins, so a run that was killed goes on where it was::

    recipe.json       the recipe, complete
    stages.json       the CPU seconds of each stage that is done
    initial/          the model as it began, warmed-up/ after the warm-up, model/ at the end
    warm-up/  rl/     metrics.jsonl, checkpoints, and for rl (rl-2, …) TensorBoard's events and curves.png
    curves.png        of all stages, one after the other
    certificate.json  of the end, where the game has a tree
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mcpgym.control import LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym.registry import load_environment
from mcpgym_rl.certificate import certify
from mcpgym_rl.files import write_atomically
from mcpgym_rl.games import PlayedGames
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.local.policy import LocalPolicy
from mcpgym_rl.new_model import new_model
from mcpgym_rl.policies import make_policy
from mcpgym_rl.sft import SftStep, fit
from mcpgym_rl.training.checkpoint import State
from mcpgym_rl.training.curves import draw_curves
from mcpgym_rl.training.models import load_model, save_model
from mcpgym_rl.training.recipe import Recipe
from mcpgym_rl.training.sections import Rl
from mcpgym_rl.training.trainer import Setup, Trainer


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: its model, its certificate (None without one), why training stopped, and its CPU seconds."""

    model: Path
    certificate: Mapping[str, Any] | None
    finished: str
    cpu_seconds: float


class Pipeline:
    """A run of ``recipe`` in ``folder``, begun or gone on with.

    ``report`` gets ``(stage, row)`` after each step; a row is what ``metrics.jsonl`` gets.

    Raises:
        ConfigurationError: the folder has a run of another recipe.
    """

    def __init__(
        self, recipe: Recipe, folder: Path, report: Callable[[str, Mapping[str, Any]], None] = lambda stage, row: None
    ) -> None:
        self.recipe, self.folder, self.report = recipe, folder, report
        self.environment: Environment[Any, Any, Any] = load_environment(recipe.environment, recipe.config)
        folder.mkdir(parents=True, exist_ok=True)
        self._claim()
        torch.manual_seed(recipe.seed)  # nothing below draws from it but dropout, where a model has it

    @property
    def _title(self) -> str:
        return f"{self.recipe.environment}, seed {self.recipe.seed}"

    def _claim(self) -> None:
        path = self.folder / "recipe.json"
        own = self.recipe.model_dump(mode="json")
        if not path.exists():
            write_atomically(path, own)
        elif json.loads(path.read_text("utf-8")) != own:
            raise ConfigurationError(
                f"{self.folder} has a run of another recipe; go on with that one (--resume {self.folder}), "
                "or take another folder"
            )

    def run(self) -> Outcome:
        """Go through all stages that are not done yet."""
        self._stage("initial", self._initial)
        if self.recipe.warm_up is not None:
            self._stage("warm-up", self._warm_up)
        source = self.folder / ("warmed-up" if self.recipe.warm_up else "initial")
        finished, certificate, stages = "warm-up", None, list[Path]()
        for number, rl in enumerate(filter(None, (self.recipe.rl, *self.recipe.then)), 1):
            if finished == "certified" and not rl.further:
                continue
            stage = "rl" if number == 1 else f"rl-{number}"
            state = self._reinforce(stage, rl, source)
            stages.append(self.folder / stage)
            certificate, source = state.certificate, stages[-1] / "model"
            finished = finished if finished == "certified" else state.finished or ""
        self._publish(source, stages)
        if certificate is not None:
            certificate = self._certified()
        return Outcome(self.folder / "model", certificate, finished, sum(self._spent().values()))

    # The stages.

    def _initial(self) -> None:
        """The model that training begins with: a new one, or a copy of the one that the recipe names."""
        target, section = self.folder / "initial", self.recipe.model
        if target.exists():
            shutil.rmtree(target)  # half made by a run that was killed
        if section.path is None:
            new_model(self.environment, target, seed=self.recipe.seed, size=section.new)
        else:
            shutil.copytree(open_directory(section.path).path, target)

    def _warm_up(self) -> None:
        warm_up = self.recipe.warm_up
        assert warm_up is not None
        model, chat = load_model(self.folder / "initial", self.recipe.model, self.recipe.seed)
        teacher = make_policy(warm_up.policy, self.environment)
        games = PlayedGames(self.environment, teacher, chat, seed=self.recipe.seed, split=warm_up.split)

        def told(step: SftStep) -> None:
            self.report("warm-up", {"step": step.step, "loss": step.loss, "steps": warm_up.sft.steps})

        fit(model, games, warm_up.sft, self.folder / "warm-up", on_step=told)
        save_model(model, self.folder / "initial", self.folder / "warmed-up")

    def _reinforce(self, stage: str, rl: Rl, source: Path) -> State:
        """One stage of reinforcement learning, from the model in ``source`` to its end; its model and its curves."""
        folder = self.folder / stage
        folder.mkdir(exist_ok=True)
        recipe = self.recipe.model_copy(update={"rl": rl, "then": ()})
        model, chat = load_model(source, recipe.model, recipe.seed)
        lane = ControlLane(LocalControl(Episodes({self.environment.name: self.environment})))
        spent = sum(value for name, value in self._spent().items() if name < stage or not name.startswith("rl"))
        setup = Setup(recipe, model, chat, self.environment, lane, folder, spent)
        trainer = Trainer(setup, lambda row: self.report(stage, row))
        try:
            state = asyncio.run(trainer.train())
        finally:
            draw_curves(folder, self._title)
        save_model(trainer.averaged, self.folder / "initial", folder / "model")
        self._done(stage, state.cpu_seconds - spent)
        return state

    def _certified(self) -> dict[str, Any]:
        """The certificate of the model as it was written: of the files, not of what was in memory."""
        policy = LocalPolicy(self.folder / "model", device=self.recipe.model.device)

        async def work() -> dict[str, Any]:
            try:
                return (await certify(policy, self.environment)).certificate
            finally:
                await policy.aclose()

        made = asyncio.run(work())
        write_atomically(self.folder / "certificate.json", made)
        return made

    def _publish(self, source: Path, stages: Sequence[Path]) -> None:
        """Put the model in ``source`` at the run's end, whole or not at all, and the curves of its stages."""
        draw_curves(self.folder, self._title, stages)
        target, temporary = self.folder / "model", self.folder / ".model"
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(source, temporary)
        if target.exists():
            shutil.rmtree(target)
        temporary.replace(target)

    # What is done.

    def _stage(self, name: str, work: Callable[[], None]) -> None:
        if name in self._spent():
            return
        started = time.process_time()
        work()
        self._done(name, time.process_time() - started)

    def _spent(self) -> dict[str, float]:
        path = self.folder / "stages.json"
        made: dict[str, float] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        return made

    def _done(self, stage: str, seconds: float) -> None:
        write_atomically(self.folder / "stages.json", {**self._spent(), stage: round(seconds, 3)})
