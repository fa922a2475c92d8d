"""The rules: two players take stones in turn, and whoever takes the last one wins. Plain Python, nothing of MCP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass
class Pile:
    """A game: how many stones are left, how many may be taken at once, the opponent's chance, how it ended for us."""

    stones: int
    most: int
    seed: int
    outcome: Literal["win", "loss"] | None = None

    def take(self, count: int, ends: Literal["win", "loss"]) -> None:
        """Take stones; taking the last one ``ends`` the game so."""
        self.stones -= count
        self.outcome = None if self.stones else ends


def best(stones: int, most: int) -> int:
    """How many stones win; 1, the slowest way to lose, where nothing does."""
    return stones % (most + 1) or 1
