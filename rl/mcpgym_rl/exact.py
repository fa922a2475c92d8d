"""What a policy's games on some tasks come to, exactly: over all seeds, and not for those that were played.

For games that give their tree and say whom each task's policy meets (:class:`~mcpgym.game_tree.Mixture`). A reference
policy that states its chances (:class:`~mcpgym.game_tree.StatedPolicy`) is worked out position by position; any other
must be deterministic, and is walked through every line as for a certificate.

How a game ends depends on the opponent's share of random moves alone. So each result is worked out once, as a
polynomial in that share, whatever the number of tasks.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest
from typing import Any

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError
from mcpgym.game_tree import CERTAIN, Chances, GameTree, Mixture, StatedPolicy, opponent_of
from mcpgym_rl.certificate import certify
from mcpgym_rl.certificate.values import MAX_POSITIONS
from mcpgym_rl.policies.reference import Reference
from mcpgym_rl.policy import Policy
from mcpgym_rl.rollout import DEFAULT_MAX_TURNS

ENDS = ("win", "draw", "loss", "unfinished")
Polynomial = tuple[Fraction, ...]
"""Its coefficients, the constant first."""
Ends = dict[str, Polynomial]
"""How a game ends: the chance of each of ``ENDS`` that can be, as a polynomial in the opponent's random share."""

_ALWAYS: Polynomial = (Fraction(1),)


class NoExactValue(ConfigurationError):
    """There is none for this policy on these tasks; the message says why."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The exact shares of ``ENDS`` over ``episodes`` episodes of ``tasks`` tasks, whatever their seeds.

    ``by_seat`` has those of the episodes in each seat alone; None where there are none.
    """

    outcomes: Mapping[str, Fraction]
    by_seat: Mapping[str, Mapping[str, Fraction] | None]
    episodes: int
    tasks: int


def states_its_chances(policy: Policy) -> bool:
    """Whether the policy's exact value needs no games: it says itself how likely it makes each move."""
    return _stated(policy) is not None


async def exact_outcomes(
    policy: Policy,
    environment: Environment[Any, Any, Any],
    tasks: Mapping[str, int],
    *,
    max_turns: int | None = None,
    concurrency: int | None = None,
) -> Exact:
    """How the policy's games on ``tasks`` end.

    Args:
        policy: who plays: one that states its chances, or is deterministic.
        environment: the game, as it is configured.
        tasks: how many episodes there are of each task, by its id.
        max_turns: the limit on turns of a rollout, where it has one of its own.
        concurrency: at how many points a deterministic policy is asked at once; None for all of a level.

    Raises:
        NoExactValue: the environment does not say enough, or the policy is none of these.
        PolicyError: the policy gave no turn.
    """
    name = environment.name
    tree = environment.game_tree()
    if tree is None:
        raise NoExactValue(f"{name} gives no game tree (Environment.game_tree)")
    if not tasks:
        raise NoExactValue("no episode was scored")
    met: dict[Mixture, int] = {}
    for task, count in tasks.items():
        mixture = opponent_of(tree, environment.task(task))
        if mixture is None:
            raise NoExactValue(f"{name} does not say who the opponent of {task} is (the tree's opponent)")
        met[mixture] = met.get(mixture, 0) + count
    turns = environment.max_turns or DEFAULT_MAX_TURNS
    if max_turns is not None and max_turns < turns and _stated(policy) is None:
        raise NoExactValue(f"a limit of {max_turns} turns is below the game's own, {turns}")
    seats = await _worked_out(policy, environment, tree, min(turns, max_turns or turns), concurrency)
    return Exact(_over(met, seats), {seat: _of_seat(seat, met, seats) for seat in seats}, sum(met.values()), len(tasks))


def _of_seat(seat: str, met: Mapping[Mixture, int], seats: Mapping[str, Ends]) -> Mapping[str, Fraction] | None:
    there = {mixture: count for mixture, count in met.items() if mixture.seat == seat}
    return _over(there, seats) if there else None


def _over(met: Mapping[Mixture, int], seats: Mapping[str, Ends]) -> dict[str, Fraction]:
    """The shares of all episodes together."""
    total = dict.fromkeys(ENDS, Fraction(0))
    for mixture, count in met.items():
        for end, chance in seats[mixture.seat].items():
            total[end] += _at(chance, mixture.random) * count
    return {end: share / sum(met.values()) for end, share in total.items()}


async def _worked_out(
    policy: Policy, environment: Environment[Any, Any, Any], tree: GameTree, turns: int, concurrency: int | None
) -> dict[str, Ends]:
    """How games end in each seat."""
    if (stated := _stated(policy)) is not None:
        return _Positions(tree, stated).of_seats(turns)
    try:
        found = await certify(policy, environment, concurrency=concurrency)
    except ConfigurationError as error:
        raise NoExactValue(str(error)) from None
    seats: dict[str, Ends] = {seat: {} for seat in tree.seats}
    for line in found.lines:
        ends: Ends = {line.outcome or "unfinished": _ALWAYS}
        for reply in line.replies:
            ends = _mixed([(reply, ends)])
        _add(seats[line.seat], ends, Fraction(1))
    return seats


class _Positions:
    """The positions of a game under a policy that states its chances, each worked out once for all of its key."""

    def __init__(self, tree: GameTree, policy: StatedPolicy) -> None:
        self._tree, self._policy = tree, policy
        self._known: dict[tuple[Hashable, int], tuple[list[Fraction], Ends]] = {}

    def of_seats(self, turns: int) -> dict[str, Ends]:
        """How games end in each seat, when the policy has so many turns."""
        return {
            seat: _mixed([(start.chances, self._of(start.state, turns)) for start in self._tree.starts(seat)])
            for seat in self._tree.seats
        }

    def _of(self, state: Hashable, left: int) -> Ends:
        outcome = self._tree.outcome(state)
        if outcome is not None or left <= 0:
            return {outcome or "unfinished": _ALWAYS}
        choices = self._policy.choices(state)
        chances = sorted(chance for chance, _ in choices)
        key = self._tree.key(state), left
        if (known := self._known.get(key)) is not None:
            if known[0] != chances:
                raise NoExactValue(f"the policy states other chances for {state!r} than for another of its key")
            return known[1]
        if sum(chances) != 1 or chances[0] < 0:
            raise NoExactValue(f"the chances that the policy states for {state!r} are {', '.join(map(str, chances))}")
        if len(self._known) == MAX_POSITIONS:
            raise NoExactValue(f"this game has over {MAX_POSITIONS} positions: too many to work out")
        made: Ends = {}
        for chance, call in choices:
            if not chance:
                continue
            answers = self._tree.answers(state, *call)
            after = _mixed([(answer.chances, self._of(answer.state, left - 1)) for answer in answers])
            _add(made, after, chance)
        self._known[key] = chances, made
        return made


def _stated(policy: Policy) -> StatedPolicy | None:
    who: Any = policy.function if isinstance(policy, Reference) else policy
    return who if callable(getattr(who, "choices", None)) else None


def _mixed(branches: Sequence[tuple[Chances, Ends]]) -> Ends:
    """What follows when the opponent takes one of these branches: with the share e of random moves, a branch has the
    chance perfect + e · (random - perfect)."""
    if len(branches) == 1 and branches[0][0] == CERTAIN:
        return branches[0][1]
    made: Ends = {}
    for chances, ends in branches:
        _add(made, ends, chances.perfect)
        _add(made, {end: (Fraction(0), *chance) for end, chance in ends.items()}, chances.random - chances.perfect)
    return made


def _add(total: Ends, ends: Ends, weight: Fraction) -> None:
    """Add ``ends`` so often to ``total``."""
    for end, chance in ends.items() if weight else ():
        there = total.get(end, ())
        total[end] = tuple(a + b * weight for a, b in zip_longest(there, chance, fillvalue=Fraction(0)))


def _at(chance: Polynomial, share: Fraction) -> Fraction:
    value = Fraction(0)
    for item in reversed(chance):
        value = value * share + item
    return value
