"""What can be chosen of TextArena."""

from __future__ import annotations

from pydantic import Field

from mcpgym import Config


class TextArenaConfig(Config):
    """Which game, and how many tasks."""

    game: str = Field(default="TicTacToe-v0", min_length=1, max_length=100)
    """The game, as TextArena calls it: TicTacToe-v0, ConnectFour-v0-large, Mastermind-v0-hard."""
    max_actions: int = Field(default=200, ge=1, le=2_000)
    """How many actions the policy has; a game that is not over then is lost."""
    train_tasks: int = Field(default=10_000, ge=2, le=1_000_000)
    """How many tasks the train split has; each is a seed, and in games for two a seat: first and second by turns."""
    test_tasks: int = Field(default=1_000, ge=2, le=1_000_000)
    """How many tasks the test split has; no seed is in both."""
