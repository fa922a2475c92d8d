"""The state of an episode."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False, slots=True)
class Play:
    """``made`` is the environment, ``names`` its actions, ``actions`` those that were taken and ``gained`` what they
    brought together. ``idle`` counts calls that named no action."""

    made: Any
    seed: int
    names: tuple[str, ...]
    limit: int
    shown: str = ""
    actions: list[Any] = field(default_factory=list)
    gained: float = 0.0
    terminated: bool = False
    truncated: bool = False
    idle: int = 0

    @property
    def over(self) -> bool:
        """Whether the environment has ended the episode."""
        return self.terminated or self.truncated
