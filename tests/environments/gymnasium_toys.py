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


for name, cls in (("Echo", Echo), ("Picture", Picture)):
    if f"toys/{name}-v0" not in gymnasium.registry:
        gymnasium.register(f"toys/{name}-v0", entry_point=cls)
