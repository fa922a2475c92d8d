"""The game as an environment: tasks, a tool, an opponent, a reward, and policies to compare with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated

from mcpgym import (
    Config,
    Environment,
    GameOutcome,
    LazyTasks,
    Message,
    ReferencePolicy,
    Task,
    ToolError,
    derive_seed,
    reward,
    task_id,
    tool,
)
from mcpgym.messages import assistant, tool_call, user
from mcpgym_environments.teaching import mixed
from pydantic import Field

from my_env.engine import Pile, best


class MyEnvConfig(Config):
    """Every field is an option of every command: --config most=4."""

    most: int = Field(default=3, ge=2, le=9)
    """How many stones may be taken at once."""
    slips: float = Field(default=0.3, ge=0, le=1)
    """How often the opponent takes any number instead of the best, 0 to 1."""


class MyEnv(Environment[Task, Pile, MyEnvConfig]):
    """Take the last stone."""

    name = "my-env"
    description = "DESCRIPTION"
    config_class = MyEnvConfig
    max_turns = 20

    def tasks(self, split: str) -> Sequence[Task]:
        """A thousand games in each split, made when they are asked for; the splits share no seed."""
        return LazyTasks(
            1000, lambda index: Task(task_id(split, index), split, (), {"seed": derive_seed(split, index)})
        )

    def reset(self, task: Task, seed: int) -> Pile:
        """A fresh pile of 10 to 20 stones that can be won; the same task and seed give the same game."""
        seed, most = derive_seed(task.info["seed"], seed), self.config.most
        return Pile(Random(seed).choice([n for n in range(10, 21) if n % (most + 1)]), most, seed)

    def messages(self, task: Task, pile: Pile) -> Sequence[Message]:
        """The rules, and where the game stands."""
        return [user(f"Take 1 to {pile.most} stones, then I do. Who ends it wins. stones: {pile.stones}")]

    @tool(inline=True)
    def take(self, pile: Pile, count: Annotated[int, Field(ge=1, le=9), "How many stones you take."]) -> str:
        """Take stones. The answer says what the opponent took and how many are left."""
        if count > (most := min(pile.most, pile.stones)):
            raise ToolError(f"take 1 to {most} stones, not {count}. stones: {pile.stones}")
        pile.take(count, "win")
        if pile.outcome:
            return "You took the last stone and win."
        random = Random(derive_seed(pile.seed, pile.stones))
        any_number, slip = random.randint(1, min(pile.most, pile.stones)), random.random() < self.config.slips
        pile.take(reply := any_number if slip else best(pile.stones, pile.most), "loss")
        return f"I took {reply}, the last: you lose." if pile.outcome else f"I took {reply}. stones: {pile.stones}"

    def is_done(self, pile: Pile) -> bool:
        """Whether somebody has won."""
        return pile.outcome is not None

    def game_outcome(self, pile: Pile) -> GameOutcome | None:
        """Lets reports count wins and losses."""
        return pile.outcome

    @reward
    def won(self, pile: Pile) -> float:
        """1 for a win."""
        return float(pile.outcome == "win")

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """What to compare with; they see what any policy sees."""
        return {"expert": self._expert, "random": self._random}

    def teacher(self, skill: float) -> ReferencePolicy:
        """What a model imitates before it learns by itself: the expert, with slips that are not learnt."""
        return mixed(self._expert, self._random, skill)

    def _expert(self, messages: Sequence[Message], random: Random) -> Message:
        return _turn(best(_stones(messages), self.config.most))

    def _random(self, messages: Sequence[Message], random: Random) -> Message:
        return _turn(random.randint(1, min(self.config.most, _stones(messages))))


def _stones(messages: Sequence[Message]) -> int:
    """How many stones are left, as the last message says."""
    return int(messages[-1]["content"].rpartition("stones: ")[2])


def _turn(count: int) -> Message:
    return assistant("", [tool_call("call_0", "take", json.dumps({"count": count}))])
