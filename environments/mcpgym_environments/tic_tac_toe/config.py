"""What may be configured about tic-tac-toe."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from mcpgym import Config


class TicTacToeConfig(Config):
    """The opponents, the seat, what an illegal move costs, and how many tasks there are.

    The defaults are the game in its final form. Its first, harsher form is
    ``min_random_move_prob=1 policy_moves=first illegal_move_loses=true``.
    """

    min_random_move_prob: float = Field(default=0.0, ge=0, le=1, allow_inf_nan=False)
    """The least share of random moves an opponent makes, 0 to 1; 0 is perfect play."""
    max_random_move_prob: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)
    """The largest share of random moves an opponent makes, 0 to 1; 1 is purely random play."""
    best_move: Literal["any", "first"] = "any"
    """Which of several equally good moves an opponent takes: any of them, or always the first. A policy can learn the
    first-mover by heart, win or draw against it every time, and lose to any other player: it is here to show that."""
    num_groups: int = Field(default=16, ge=1, le=10_000)
    """Into how many equal parts the range of that share is cut; any so many consecutive tasks have one of each part."""
    policy_moves: Literal["first", "second", "either"] = "either"
    """When the policy moves: first, second, or either, as the task's seed says."""
    illegal_move_loses: bool = False
    """Whether an illegal move loses the game at once; otherwise it changes nothing on the board."""
    max_turns: int = Field(default=8, ge=1, le=1_000)
    """How many calls of play a game may take, illegal ones included; the longest legal game takes five."""
    train_tasks: int = Field(default=10_000, ge=1, le=1_000_000_000)
    """How many tasks the train split has."""
    test_tasks: int = Field(default=1_000, ge=1, le=1_000_000_000)
    """How many tasks the test split has."""

    @model_validator(mode="after")
    def _range(self) -> Self:
        if self.min_random_move_prob > self.max_random_move_prob:
            raise ValueError(
                f"min_random_move_prob={self.min_random_move_prob:g} must not be above "
                f"max_random_move_prob={self.max_random_move_prob:g}"
            )
        return self
