"""What can be chosen of a Gymnasium environment."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from mcpgym import Config
from mcpgym_environments.imported.seeds import json_object

HARMLESS = ("FrozenLake", "Taxi", "CliffWalking", "Blackjack", "CartPole", "MountainCar", "Acrobot")
"""What the names of Gymnasium's own small environments begin with: their options open no files."""


class GymnasiumConfig(Config):
    """Which environment, how it is made, and how its return becomes a reward."""

    id: str = Field(default="FrozenLake-v1", min_length=1, max_length=200)
    """The environment's id, as gymnasium.make takes it; MODULE:ID imports the module first, which registers it."""
    options: str = Field(default="", max_length=10_000)
    """Keyword arguments of gymnasium.make, as a JSON object: {"is_slippery": false}."""
    max_steps: int = Field(default=0, ge=0, le=5_000)
    """Steps after which an episode is cut off; 0 for the environment's own limit, or 200 where it has none."""
    show: Literal["auto", "values"] = "auto"
    """What the policy reads: the environment's picture in text beside the observation, where it has one, or the
    observation alone."""
    lowest: float = Field(default=0.0, allow_inf_nan=False)
    """The return that is worth a reward of 0; with highest the same, the reward is the return as it is."""
    highest: float = Field(default=0.0, allow_inf_nan=False)
    """The return that is worth a reward of 1. What lies outside lowest and highest is taken as the nearer of them."""
    train_tasks: int = Field(default=10_000, ge=1, le=1_000_000)
    """How many tasks the train split has; each is a seed."""
    test_tasks: int = Field(default=1_000, ge=1, le=1_000_000)
    """How many tasks the test split has; no seed is in both."""

    @field_validator("options")
    @classmethod
    def _an_object(cls, value: str) -> str:
        json_object(value, '{"is_slippery": false}')
        return value.strip()

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.highest < self.lowest:
            raise ValueError("highest must not be below lowest")
        return self

    @property
    def arguments(self) -> dict[str, Any]:
        """The options."""
        return dict(json.loads(self.options)) if self.options else {}

    def reaches(self) -> Sequence[str]:
        """The module that an id imports, and the options of what is not Gymnasium's own."""
        found = [f"id={self.id}"] if ":" in self.id else []
        if self.options and not self.id.startswith(HARMLESS):
            found.append(f"options={self.options}")
        return found
