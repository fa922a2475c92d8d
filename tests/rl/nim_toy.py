"""Nim, a game with a tree that is not tic-tac-toe: whoever takes the last of a few stones wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from mcpgym import Config, Environment, GameOutcome, LazyTasks, Message, Task, ToolError, reward, task_id, tool
from mcpgym.game_tree import Answer, Chances, LegalCall, Start, call_tool
from mcpgym.messages import assistant, tool_call, user


class NimConfig(Config):
    stones: int = Field(default=6, ge=1, le=30)
    """How many there are."""
    most: int = Field(default=2, ge=1, le=5)
    """How many may be taken at once."""
    turns: int = Field(default=20, ge=1, le=20)
    """How many turns there are."""


@dataclass
class Pile:
    stones: int
    replies: list[int]
    outcome: GameOutcome | None = None


class Heap(NamedTuple):
    stones: int
    outcome: GameOutcome | None = None


class Nim(Environment[Task, Pile, NimConfig]):
    name = "nim-toy"
    version = "3"
    config_class = NimConfig

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(
            10,
            lambda index: Task(
                task_id(split, index), split, (), {"first": True, "replies": [], "of": split, "index": index}
            ),
        )

    def task(self, wanted: str) -> Task:
        kind, _, rest = wanted.partition("/")
        if kind not in ("first", "second"):
            return super().task(wanted)
        theirs = rest.split(",")[kind == "first" :: 2] if rest else []
        info = {"first": kind == "first", "replies": [int(count) for count in theirs]}
        return Task(wanted, "line", (), info)

    def reset(self, task: Task, seed: int) -> Pile:
        replies = [*task.info["replies"], *([1] * 30)]
        stones = self.config.stones
        if not task.info["first"]:
            stones -= replies.pop(0)
        return Pile(stones, replies)

    def messages(self, task: Task, state: Pile) -> Sequence[Message]:
        return [user(f"stones: {state.stones}")]

    @tool(inline=True)
    def take(self, pile: Pile, count: Annotated[int, "How many stones you take."]) -> str:
        """Take stones."""
        if not 1 <= count <= min(self.config.most, pile.stones):
            raise ToolError(f"not {count}; stones: {pile.stones}")
        pile.stones -= count
        if not pile.stones:
            pile.outcome = "win"
            return "the last: you win"
        reply = pile.replies.pop(0)
        pile.stones -= reply
        if not pile.stones:
            pile.outcome = "loss"
            return f"I took {reply}, the last: you lose"
        return f"I took {reply}. stones: {pile.stones}"

    def is_done(self, state: Pile) -> bool:
        return state.outcome is not None

    def game_outcome(self, state: Pile) -> GameOutcome | None:
        return state.outcome

    @property
    def max_turns(self) -> int:
        return self.config.turns

    @reward
    def won(self, pile: Pile) -> float:
        """1 for a win."""
        return float(pile.outcome == "win")

    def reference_policies(self) -> Mapping[str, Any]:
        return {"expert": self._expert, "random": self._random}

    def _expert(self, messages: Sequence[Message], random: Random) -> Message:
        return take(stones_left(messages) % (self.config.most + 1) or 1)

    def _random(self, messages: Sequence[Message], random: Random) -> Message:
        return take(random.randint(1, min(self.config.most, stones_left(messages))))

    def game_tree(self) -> NimTree:
        return NimTree(self)


class NimTree:
    """Nobody opens in ``first``; in ``second`` the opponent took some stones."""

    def __init__(self, nim: Nim) -> None:
        self.nim = nim
        self.seats = ("first", "second") if nim.config.stones > nim.config.most else ("first",)

    def starts(self, seat: str) -> list[Start[Heap]]:
        stones = self.nim.config.stones
        if seat == "first":
            return [Start(Heap(stones), [user(f"stones: {stones}")])]
        return [
            Start(Heap(stones - reply), [user(f"stones: {stones - reply}")], str(reply), chances)
            for reply, chances in self.replies(stones)
        ]

    def replies(self, stones: int) -> list[tuple[int, Chances]]:
        counts = range(1, min(self.nim.config.most, stones) + 1)
        best = [count for count in counts if (stones - count) % (self.nim.config.most + 1) == 0] or list(counts)
        return [(n, Chances(Fraction(1, len(counts)), Fraction(n in best, len(best)))) for n in counts]

    def answers(self, state: Heap, tool: str, arguments: Mapping[str, Any]) -> list[Answer[Heap]]:
        answers = []
        pile = Pile(state.stones, [0], state.outcome)
        text, is_error = call_tool(self.nim, pile, tool, arguments)
        if is_error:
            return [Answer(state, text, True)]
        act = str(state.stones - pile.stones)
        if pile.outcome is not None:
            return [Answer(Heap(0, pile.outcome), text, act=act)]
        for reply, chances in self.replies(pile.stones):
            pile = Pile(state.stones, [reply])
            text, _ = call_tool(self.nim, pile, tool, arguments)
            after = Heap(pile.stones, pile.outcome)
            answers.append(Answer(after, text, act=act, reply=str(reply), chances=chances))
        return answers

    def legal(self, state: Heap) -> list[LegalCall]:
        counts = range(1, min(self.nim.config.most, state.stones) + 1) if state.outcome is None else ()
        return [LegalCall("take", {"count": count}) for count in counts]

    def outcome(self, state: Heap) -> GameOutcome | None:
        return state.outcome

    def key(self, state: Heap) -> Heap:
        return state

    def draw(self, seat: str, acts: Sequence[str]) -> str:
        return "|" * (self.nim.config.stones - sum(map(int, acts)))

    def line_task(self, seat: str, acts: Sequence[str], random_move_prob: float = 0.0) -> str:
        return f"{seat}/{','.join(acts)}"


def take(count: Any) -> Message:
    return assistant("", [tool_call("c", "take", f'{{"count": {count}}}')])


def stones_left(messages: Sequence[Message]) -> int:
    return int(messages[-1]["content"].rpartition("stones: ")[2])
