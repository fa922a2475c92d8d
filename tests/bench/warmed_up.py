"""The model that the training benchmark compares with: new, tiny, and warmed up until it plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcpgym import load_environment
from mcpgym.messages import assistant
from mcpgym_rl.games import PlayedGames, game_of
from mcpgym_rl.local.chat import Chat
from mcpgym_rl.new_model import new_model
from mcpgym_rl.policies import make_policy
from mcpgym_rl.sft import Game, SftConfig, fit
from mcpgym_rl.training.models import load_model, save_model
from mcpgym_rl.training.sections import ModelSection

NAME = "tic-tac-toe"


class GamesWithGoodbye(PlayedGames):
    """A teacher's games, each with an empty turn after its end.

    Our rollouts end with the game. TRL's go on until the model says something without a call, so the model must have
    learnt to say nothing there: else TRL would play on against an environment that is over, at its cost.
    """

    def __iter__(self) -> Iterator[Game]:
        place = 0
        while True:
            for trace in self._play(range(place, place + 256)):
                yield game_of(self.chat, [*trace.messages, assistant("")], trace.prompt_messages, self._tools)
            place += 256


def make_model(folder: Path, steps: int) -> None:
    """In ``folder``, a directory ``warm``: a new model after ``steps`` updates on games of the one-ply teacher."""
    environment = load_environment(NAME)
    source = new_model(environment, folder / "new", seed=0)
    model, chat = load_model(source, ModelSection())
    games = GamesWithGoodbye(environment, make_policy("teacher:skill=0.9", environment), chat)
    fit(model, games, SftConfig(steps=steps, warm_up_steps=min(50, steps // 4)))
    save_model(model, source, folder / "warm")


def load(path: Path) -> tuple[Any, Chat]:
    """The model and its chat, fresh."""
    return load_model(path, ModelSection())
