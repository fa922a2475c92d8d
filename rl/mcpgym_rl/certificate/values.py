"""What positions of a finite game are worth: what can be guaranteed, and how often that wins against random play.

Worked out once for a tree and kept with it, for it has nothing to do with the policy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from mcpgym.environment import Environment, GameOutcome
from mcpgym.errors import ConfigurationError
from mcpgym.game_tree import GameTree
from mcpgym_rl.certificate.lines import Point, Rules

NEVER_LOSES = 0
"""The least guarantee of a policy that never loses."""
GUARANTEES: dict[GameOutcome | None, int] = {"win": 1, "draw": 0, "loss": -1, None: -1}
"""The worst that can happen, as a number; a game that does not end is as bad as a lost one."""
MAX_POSITIONS = 1_000_000
Branches = list[tuple[Fraction, Hashable]]
GUARANTEED = {1: "win", 0: "draw", -1: "loss"}


class Value(NamedTuple):
    """What a position is worth to the policy.

    ``guaranteed`` is the best outcome that it can force (1 a win, 0 a draw, -1 none). ``win`` and ``draw`` are the
    chances against a uniformly random opponent of the policy that never gives away what does not lose, and among those
    wins most often: of the policies that never lose, the best. Where the game is lost anyhow, it wins most often.
    """

    guaranteed: int
    win: Fraction
    draw: Fraction

    @property
    def loss(self) -> Fraction:
        """The chance that it is lost, or does not end."""
        return 1 - self.win - self.draw


class Values:
    """The values of one tree under one limit on turns.

    Raises:
        ConfigurationError: from any method, when the tree has more than ``MAX_POSITIONS`` positions.
    """

    def __init__(self, tree: GameTree, max_turns: int) -> None:
        self.tree = tree
        self.max_turns = max_turns
        self._moves: dict[Hashable, list[Branches]] = {}
        self._longest: dict[Hashable, int] = {}
        self._known: dict[tuple[Hashable, int], Value] = {}

    @cached_property
    def starts(self) -> dict[str, Value]:
        """What each seat is worth."""
        found = {}
        for seat in self.tree.seats:
            starts = [(start.chances.random, start.state) for start in self.tree.starts(seat)]
            found[seat] = self._average(starts, self.max_turns)
        return found

    def of(self, state: Hashable, left: int) -> Value:
        """What ``state`` is worth when the policy has ``left`` turns: a legal move each."""
        outcome = self.tree.outcome(state)
        if outcome is not None:
            return ended(outcome)
        enough = min(left, self._turns(state))
        if enough <= 0:
            return ended(None)
        key = (self.tree.key(state), enough)
        if (known := self._known.get(key)) is None:
            after = (self._average(branches, enough - 1) for branches in self._branches(state))
            known = self._known[key] = max(after, key=_merit)
        return known

    def best(self, state: Hashable, left: int) -> str | None:
        """The label of a best move; None where there is no move."""
        best: tuple[Any, str | None] | None = None
        for call in self.tree.legal(state):
            answers = self.tree.answers(state, *call)
            merit = _merit(self._average([(item.chances.random, item.state) for item in answers], left - 1))
            if best is None or merit > best[0]:
                best = merit, answers[0].act
        return None if best is None else best[1]

    def _average(self, branches: Branches, left: int) -> Value:
        return average((chance, self.of(state, left)) for chance, state in branches)

    def _turns(self, state: Hashable) -> int:
        """How many turns the longest game from here takes: more of them make nothing better."""
        if self.tree.outcome(state) is not None:
            return 0
        key = self.tree.key(state)
        if (known := self._longest.get(key)) is None:
            after = (self._turns(child) for branches in self._branches(state) for _, child in branches)
            known = self._longest[key] = 1 + max(after) if self._branches(state) else 0
        return known

    def _branches(self, state: Hashable) -> list[Branches]:
        """What can follow each legal move, with its chance."""
        key = self.tree.key(state)
        if (known := self._moves.get(key)) is None:
            if len(self._moves) == MAX_POSITIONS:
                raise ConfigurationError(f"this game has over {MAX_POSITIONS} positions: too many to certify a policy")
            answers = (self.tree.answers(state, *call) for call in self.tree.legal(state))
            known = self._moves[key] = [[(item.chances.random, item.state) for item in found] for found in answers]
        return known


def ended(outcome: GameOutcome | None) -> Value:
    """What a finished game is worth; one that ends without an outcome is neither won nor drawn."""
    return Value(GUARANTEES[outcome], Fraction(outcome == "win"), Fraction(outcome == "draw"))


def average(branches: Iterable[tuple[Fraction, Value]]) -> Value:
    """What it is worth to come to one of these positions, by these chances: the worst is what is guaranteed."""
    found = list(branches)
    return Value(
        min(value.guaranteed for _, value in found),
        sum((chance * value.win for chance, value in found), Fraction(0)),
        sum((chance * value.draw for chance, value in found), Fraction(0)),
    )


def _merit(value: Value) -> tuple[bool, Fraction, Fraction, int]:
    """Not to lose comes first, then to win often, then to draw often, then what can be forced."""
    return value.guaranteed >= NEVER_LOSES, value.win, value.draw, value.guaranteed


def values_of(environment: Environment[Any, Any, Any], max_turns: int) -> Values:
    """The values of an environment's tree; remembered for the same environment.

    Raises:
        ConfigurationError: it has no tree.
    """
    if (known := _VALUES.get(environment)) is not None and known.max_turns == max_turns:
        return known
    tree = environment.game_tree()
    if tree is None:
        if program := getattr(environment, "tree_elsewhere", ""):
            raise ConfigurationError(
                f"{environment.name} plays in a virtual environment of its own, and its game tree is there: use that "
                f"one's mcpgym, {program}"
            )
        raise ConfigurationError(
            f"{environment.name} cannot be certified: it gives no game tree (Environment.game_tree); "
            "only finite games of two players have one"
        )
    made = _VALUES[environment] = Values(tree, max_turns)
    return made


_VALUES: WeakKeyDictionary[Environment[Any, Any, Any], Values] = WeakKeyDictionary()


def value_at(values: Values, rules: Rules, point: Point) -> Value:
    """What a point of a game is worth, whether its line has ended there or not."""
    if point.end is not None:
        return ended(rules.tree.outcome(point.state))
    return values.of(point.state, rules.left(point))
