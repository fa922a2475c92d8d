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
from math import gcd, lcm
from typing import Any, NamedTuple

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError
from mcpgym.game_tree import CERTAIN, Chances, GameTree, Mixture, StatedPolicy, opponent_of
from mcpgym_rl.certificate import certify
from mcpgym_rl.certificate.values import MAX_POSITIONS
from mcpgym_rl.policies.reference import Reference
from mcpgym_rl.policy import Policy
from mcpgym_rl.rollout import DEFAULT_MAX_TURNS

ENDS = ("win", "draw", "loss", "unfinished")


class Ends(NamedTuple):
    """How a game ends: the chance of each of ``ENDS`` that can be, as a polynomial in the opponent's random share.

    Integers with one denominator for all, for fractions take several times as long to add.
    """

    whole: int
    """The denominator."""
    parts: Mapping[str, Sequence[int]]
    """Coefficients of the polynomials, the constant first."""


def _always(end: str) -> Ends:
    return Ends(1, {end: (1,)})


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
        ends = seats[mixture.seat]
        for end, chance in ends.parts.items():
            total[end] += _at(chance, mixture.random) * count / ends.whole
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
    seats: dict[str, list[_Weighted]] = {seat: [] for seat in tree.seats}
    for line in found.lines:
        ends = _always(line.outcome or "unfinished")
        for reply in line.replies:
            ends = _mixed([(reply, ends)])
        seats[line.seat].append(_Weighted(1, 1, 0, ends))
    return {seat: _sum(lines) for seat, lines in seats.items()}


class _Positions:
    """The positions of a game under a policy that states its chances, each worked out once for all of its key."""

    def __init__(self, tree: GameTree, policy: StatedPolicy) -> None:
        self._tree, self._policy = tree, policy
        self._known: dict[tuple[Hashable, int], tuple[list[tuple[int, int]], Ends]] = {}

    def of_seats(self, turns: int) -> dict[str, Ends]:
        """How games end in each seat, when the policy has so many turns."""
        return {
            seat: _mixed([(start.chances, self._of(start.state, turns)) for start in self._tree.starts(seat)])
            for seat in self._tree.seats
        }

    def _of(self, state: Hashable, left: int) -> Ends:
        outcome = self._tree.outcome(state)
        if outcome is not None or left <= 0:
            return _always(outcome or "unfinished")
        choices = self._policy.choices(state)
        chances = sorted((chance.numerator, chance.denominator) for chance, _ in choices)
        key = self._tree.key(state), left
        if (known := self._known.get(key)) is not None:
            if known[0] != chances:
                raise NoExactValue(f"the policy states other chances for {state!r} than for another of its key")
            return known[1]
        stated = sorted(chance for chance, _ in choices)
        if sum(stated) != 1 or stated[0] < 0:
            raise NoExactValue(f"the chances that the policy states for {state!r} are {', '.join(map(str, stated))}")
        if len(self._known) == MAX_POSITIONS:
            raise NoExactValue(f"this game has over {MAX_POSITIONS} positions: too many to work out")
        follow: list[_Weighted] = []
        for chance, call in choices:
            if not chance:
                continue
            answers = self._tree.answers(state, *call)
            after = _mixed([(answer.chances, self._of(answer.state, left - 1)) for answer in answers])
            follow.append(_Weighted(chance.numerator, chance.denominator, 0, after))
        self._known[key] = chances, (made := _sum(follow))
        return made


def _stated(policy: Policy) -> StatedPolicy | None:
    who: Any = policy.function if isinstance(policy, Reference) else policy
    return who if callable(getattr(who, "choices", None)) else None


def _mixed(branches: Sequence[tuple[Chances, Ends]]) -> Ends:
    """What follows when the opponent takes one of these branches: with the share e of random moves, a branch has the
    chance perfect + e · (random - perfect)."""
    if len(branches) == 1 and branches[0][0] == CERTAIN:
        return branches[0][1]
    weighted = []
    for (random, perfect), ends in branches:
        above, below = perfect.numerator, perfect.denominator
        weighted.append(_Weighted(above, below, 0, ends))
        more = random.numerator * below - above * random.denominator
        weighted.append(_Weighted(more, random.denominator * below, 1, ends))
    return _sum(weighted)


class _Weighted(NamedTuple):
    """Ends that count ``above / below`` times, multiplied before with the random share so often."""

    above: int
    below: int
    shift: int
    ends: Ends


def _sum(weighted: Sequence[_Weighted]) -> Ends:
    """Add them up."""
    weighted = [part for part in weighted if part.above]
    whole = lcm(*(below * ends.whole for _, below, _, ends in weighted))
    made: dict[str, list[int]] = {}
    for above, below, shift, ends in weighted:
        times = above * (whole // (below * ends.whole))
        for end, chance in ends.parts.items():
            total = made.setdefault(end, [])
            total.extend([0] * (len(chance) + shift - len(total)))
            for place, number in enumerate(chance, shift):
                total[place] += number * times
    common = gcd(whole, *(number for total in made.values() for number in total))
    return Ends(whole // common, {end: [number // common for number in total] for end, total in made.items()})


def _at(chance: Sequence[int], share: Fraction) -> Fraction:
    value = Fraction(0)
    for item in reversed(chance):
        value = value * share + item
    return value
