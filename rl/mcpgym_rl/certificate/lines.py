"""Lines of play, and the decisions that make them: what one turn of a policy leads to, for every reply.

The rules are those of a rollout (:mod:`mcpgym_rl.rollout`) over an episode: the same transcript, the same limits, the
same ends. Only the opponent differs: it makes every reply, each in a game of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from mcpgym.environment import GameOutcome
from mcpgym.game_tree import CERTAIN, Chances, GameTree
from mcpgym.messages import Message, tool_answer
from mcpgym_rl.parse import MalformedCall, ParsedCall, parse
from mcpgym_rl.policy import Turn
from mcpgym_rl.rollout import Limits
from mcpgym_rl.stop_reason import StopReason

Mover = Literal["policy", "opponent"]


@dataclass(frozen=True, slots=True)
class Line:
    """One whole game of the policy.

    ``acts`` are the moves of both players in order and ``movers`` whose they are, ``turns`` what the policy said,
    ``messages`` the transcript that an episode of ``task`` has when the policy plays it. ``outcome`` is None where the
    game did not end: ``stop_reason`` says why. ``chances`` are those of this line among all games in its seat.
    ``invalid_moves`` counts the calls on it that were refused or malformed.
    """

    seat: str
    acts: tuple[str, ...]
    movers: tuple[Mover, ...]
    task: str
    outcome: GameOutcome | None
    stop_reason: StopReason
    turns: tuple[Turn, ...]
    messages: tuple[Message, ...] = field(repr=False)
    chances: Chances
    invalid_moves: int
    replies: tuple[Chances, ...] = ()
    """The chances of each of the opponent's moves on it, one by one; those that alone could follow are left out."""

    @property
    def chance(self) -> Fraction:
        """How likely a uniformly random opponent is to play it, among all games in its seat."""
        return self.chances.random


@dataclass(frozen=True, slots=True)
class Point:
    """A game so far, when it is the policy's turn. ``served`` counts the calls that the environment answered,
    ``tried`` all that were made."""

    seat: str
    state: Hashable
    messages: tuple[Message, ...]
    acts: tuple[str, ...] = ()
    movers: tuple[Mover, ...] = ()
    turns: tuple[Turn, ...] = ()
    chances: Chances = CERTAIN
    served: int = 0
    tried: int = 0
    invalid_moves: int = 0
    end: StopReason | None = None
    replies: tuple[Chances, ...] = ()

    def follows(self, chances: Chances) -> Chances:
        """The chances of what follows this point with ``chances``."""
        mine = self.chances
        return mine if chances == CERTAIN else Chances(mine.random * chances.random, mine.perfect * chances.perfect)

    def replied(self, chances: Chances) -> tuple[Chances, ...]:
        """``replies`` with one more."""
        return self.replies if chances == CERTAIN else (*self.replies, chances)


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides how a game goes on: the tree, and the limits of a rollout and of an episode."""

    tree: GameTree
    max_turns: int
    """Turns that the policy has, and calls that the environment answers."""
    max_calls: int | None = Limits().max_calls
    """Calls that the policy may make in all."""

    def left(self, point: Point) -> int:
        """How many legal moves the policy can still make, a turn each."""
        return self.max_turns - max(len(point.turns), point.served)

    def after(self, point: Point, turn: Turn) -> list[Point]:
        """Everything that can follow ``turn``; a point whose ``end`` is set is the end of its line."""
        message, calls = parse(turn.message)
        said = replace(point, messages=(*point.messages, message), turns=(*point.turns, turn))
        if turn.finish == "length":
            return [replace(said, end=StopReason.TRUNCATED)]
        if not calls:
            return [replace(said, end=StopReason.ANSWERED)]
        points = [said]
        for call in calls:
            points = [after for before in points for after in self._called(before, call)]
        return [self._looked_at(after) for after in points]

    def _looked_at(self, point: Point) -> Point:
        """The point at the end of a turn: whether a limit on turns or calls has been met."""
        if point.end is not None:
            return point
        if self.max_calls is not None and point.tried >= self.max_calls:
            return replace(point, end=StopReason.MAX_CALLS)
        return replace(point, end=StopReason.MAX_TURNS) if len(point.turns) >= self.max_turns else point

    def _called(self, point: Point, call: ParsedCall | MalformedCall) -> list[Point]:
        """What follows one call of a turn, which may have several."""
        if self.max_calls is not None and point.tried >= self.max_calls:
            text = f"not run: a rollout may have {self.max_calls} tool calls"
            return [_refused(point, call, text)]
        if isinstance(call, MalformedCall):
            return [_refused(point, call, call.problem)]
        if point.end is not None:
            return [_refused(point, call, f"this episode has ended ({point.end}); no more calls")]
        found = []
        for answer in self.tree.answers(point.state, call.call["function"]["name"], call.arguments):
            moves: tuple[tuple[str | None, Mover], ...] = ((answer.act, "policy"), (answer.reply, "opponent"))
            moved = [(act, mover) for act, mover in moves if act is not None]
            served = point.served + 1
            end = StopReason.MAX_TURNS if served >= self.max_turns else None
            found.append(
                Point(
                    point.seat,
                    answer.state,
                    (*point.messages, tool_answer(call.call, answer.text, is_error=answer.is_error)),
                    (*point.acts, *(act for act, _ in moved)),
                    (*point.movers, *(mover for _, mover in moved)),
                    point.turns,
                    point.follows(answer.chances),
                    served,
                    point.tried + 1,
                    point.invalid_moves + answer.is_error,
                    end if self.tree.outcome(answer.state) is None else StopReason.DONE,
                    point.replied(answer.chances),
                )
            )
        return found

    def line(self, point: Point) -> Line:
        """The line that has come to its end."""
        assert point.end is not None
        outcome = self.tree.outcome(point.state)
        task = self.tree.line_task(point.seat, point.acts)
        moved = (point.seat, point.acts, point.movers, task, outcome, point.end, point.turns, point.messages)
        return Line(*moved, point.chances, point.invalid_moves, point.replies)


def _refused(point: Point, call: ParsedCall | MalformedCall, text: str) -> Point:
    """The point after a call that does not reach the environment."""
    answer = tool_answer(call.call, text, is_error=True)
    tried, invalid = point.tried + 1, point.invalid_moves + 1
    return replace(point, messages=(*point.messages, answer), tried=tried, invalid_moves=invalid)


def starting_points(tree: GameTree, seats: Sequence[str]) -> list[Point]:
    """Where the policy's games begin, in every seat and with every opening."""
    points = []
    for seat in seats:
        for start in tree.starts(seat):
            acts: tuple[str, ...] = () if start.act is None else (start.act,)
            movers: tuple[Mover, ...] = () if start.act is None else ("opponent",)
            point = Point(seat, start.state, tuple(start.messages), acts, movers, (), start.chances)
            points.append(replace(point, replies=point.replied(start.chances)))
    return points
