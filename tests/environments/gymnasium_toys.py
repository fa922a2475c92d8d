"""Environments for Gymnasium that are unlike its own: text for actions, dictionaries and pictures to see."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class Echo(gymnasium.Env[Any, Any]):
    """Say the word that is asked for.

    Nothing else is of use.
    """

    observation_space = spaces.Dict({"word": spaces.Text(8), "left": spaces.Discrete(4)})
    action_space = spaces.Text(8, charset="abc")

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.word = "".join(self.np_random.choice(list("abc"), 3))
        return {"word": self.word, "left": 3}, {"secret": 1}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return {"word": self.word, "left": 2}, float(action == self.word), True, False, {}


class Picture(Echo):
    """Too much to tell."""

    observation_space = spaces.Box(0, 255, (64, 64, 3), np.uint8)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros((64, 64, 3), np.uint8), {}


class Drawn(Echo):
    """Draws from a space that all its instances share, returns observations of another, and paints for a terminal."""

    metadata = {"render_modes": ["ansi"]}
    observation_space = spaces.Discrete(1_000)  # type: ignore[assignment]
    action_space = spaces.Discrete(2)  # type: ignore[assignment]

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return {"outer": {"inner": np.int64(3)}}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return int(self.observation_space.sample()), 1.0, False, False, {}

    def render(self) -> Any:
        return "\x1b]0;title\x07\x1b[2J\x1b[41mA\x1b[0m\ud800\x00B"


for name, cls in (("Drawn", Drawn), ("Echo", Echo), ("Picture", Picture)):
    if f"toys/{name}-v0" not in gymnasium.registry:
        gymnasium.register(f"toys/{name}-v0", entry_point=cls)
