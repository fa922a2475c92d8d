"""Certifying a policy: it is played against every reply that its opponent can give, in every seat.

Breadth first: the policy is asked at once for all its first turns, then for all its second ones, so that whatever
batches, batches. Its session is forked wherever the game branches.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from mcpgym.environment import Environment
from mcpgym.episodes import listings
from mcpgym.errors import ConfigurationError
from mcpgym.tasks import derive_seed
from mcpgym_rl.certificate.lines import Line, Point, Rules, starting_points
from mcpgym_rl.certificate.report import Decision, Played, Weighed, report, weigh
from mcpgym_rl.certificate.twice import NotDeterministic, Player, deterministic
from mcpgym_rl.certificate.values import values_of
from mcpgym_rl.policy import EpisodeContext, Policy, Turn
from mcpgym_rl.rollout import DEFAULT_MAX_TURNS
from mcpgym_rl.stop_reason import StopReason

MAX_LINES = 1_000_000
_FIX = "make it deterministic (temperature 0), or certify it as it plays with one seed (--seed 0)"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a certification is: decisions made, lines at their end, and the share of all games that those lines are
    (0 to 1, by their chances under random play)."""

    decisions: int
    lines: int
    share: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A decision: the policy's seat, the moves of both before it, and the policy's turns up to and with it.

    ``cost`` is the win rate against random play that is lost by it (negative where it took a risk), ``missed_win``
    whether a win could have been forced before it and not after it.
    """

    seat: str
    acts: tuple[str, ...]
    turns: tuple[Turn, ...]
    cost: float
    missed_win: bool


@dataclass(frozen=True, slots=True)
class Certification:
    """What came of it: ``certificate`` as it stands in ``certificate.json``, every line that was played, and every
    turn: ``faults`` gave away a game that could not be lost, or had a call that was refused; ``weak`` ones cost wins,
    the costliest first; the others are ``right``: they are the best, or took a risk that pays against random play."""

    certificate: dict[str, Any]
    lines: list[Line]
    faults: list[Choice]
    weak: list[Choice]
    right: list[Choice]

    @property
    def certified(self) -> bool:
        """Whether no line was lost, and none left unfinished."""
        return bool(self.certificate["certified"])


async def certify(
    policy: Policy,
    environment: Environment[Any, Any, Any],
    *,
    seed: int | None = None,
    ask_twice: bool | None = None,
    concurrency: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Certification:
    """Play ``policy`` against every possible opponent of ``environment``.

    A certificate can speak only for a policy that answers the same conversation always in the same way. One that says
    that it does (``deterministic``, or ``temperature`` 0) is believed, and one that says that it does not is refused.
    Any other is asked twice at every point, with two seeds of its own, and refused where it differs. With ``seed``, the
    policy that begins every game with that seed is certified; it may draw, but must draw the same then.

    Args:
        policy: who plays.
        environment: the game; it must give its tree.
        seed: of the policy's own randomness, in every game; None for a policy that has none.
        ask_twice: whether the policy is asked twice; None where it does not say itself that it is deterministic.
        concurrency: at how many points the policy is asked at once; None for all of a level.
        on_progress: told after every level.

    Raises:
        ConfigurationError: the environment has no tree, or one too large.
        NotDeterministic: the policy answered in two ways; the message shows where.
        PolicyError: it gave no turn.
    """
    if type(environment).respond is not Environment.respond:
        raise ConfigurationError(
            f"{environment.name} cannot be certified: it answers as the user (respond), and a game must end with the "
            "policy's first turn without a call"
        )
    values = values_of(environment, environment.max_turns or DEFAULT_MAX_TURNS)
    rules = Rules(values.tree, values.max_turns)
    says = deterministic(policy)
    if says is False:
        raise NotDeterministic(f"{policy.name} draws its answers; certify it with temperature 0")
    _ = values.starts  # a game that is too large is refused before anybody plays it
    twice = ask_twice if ask_twice is not None else says is None
    work = _Work(policy, rules, asyncio.Semaphore(concurrency) if concurrency else None)
    try:
        await work.play(_contexts(environment, seed, twice), on_progress)
    except NotDeterministic as error:
        raise NotDeterministic(f"{error}; {_FIX}" if seed is None else str(error)) from None
    finally:
        await work.aclose()
    played = Played(policy, environment, rules, values, work.lines, work.decisions, seed, twice)
    weighed = weigh(played)
    return Certification(report(played, weighed), work.lines, *_choices(work.decisions, weighed))


def _choices(decisions: Sequence[Decision], weighed: Sequence[Weighed]) -> tuple[list[Choice], ...]:
    """Those that gave the game away or were refused, those that cost wins, and the others."""
    wrong = {id(item.decision): item for item in weighed}
    faults, weak, right = list[Choice](), list[Choice](), list[Choice]()
    for decision in (*(item.decision for item in weighed), *(each for each in decisions if id(each) not in wrong)):
        if decision.turn is None:
            continue
        item = wrong.get(id(decision))
        refused = any(after.invalid_moves > decision.point.invalid_moves for after in decision.after)
        if refused or (item is not None and item.blunder):
            faults.append(_choice(decision, item))
        elif item is not None and item.regret > 0:
            weak.append(_choice(decision, item))
        else:
            right.append(_choice(decision, item))
    return faults, weak, right


def _choice(decision: Decision, item: Weighed | None) -> Choice:
    point, turn = decision.point, decision.turn
    assert turn is not None
    known = (point.seat, point.acts, (*point.turns, turn))
    if item is None:
        return Choice(*known, 0.0, False)
    return Choice(*known, float(item.regret * item.reached), item.before.guaranteed > item.after.guaranteed)


def _contexts(environment: Environment[Any, Any, Any], seed: int | None, twice: bool) -> list[EpisodeContext]:
    """What the policy's sessions begin with: where it is asked twice, with two seeds unless one was given."""
    seeds = [derive_seed("certificate", number) if seed is None else seed for number in range(2 if twice else 1)]
    return [EpisodeContext(environment.name, listings(environment), number) for number in seeds]


class _Work:
    """A certification under way."""

    def __init__(self, policy: Policy, rules: Rules, gate: asyncio.Semaphore | None) -> None:
        self.lines: list[Line] = []
        self.decisions: list[Decision] = []
        self._policy = policy
        self._rules = rules
        self._gate = gate
        self._level: deque[tuple[Point, Player]] = deque()
        self._next: deque[tuple[Point, Player]] = deque()

    async def play(self, contexts: list[EpisodeContext], on_progress: Callable[[Progress], None] | None) -> None:
        """Play every line to its end."""
        tree = self._rules.tree
        for point in starting_points(tree, tree.seats):
            self._level.append((point, Player.begin(self._policy, contexts)))
        while self._level:
            turns = await _all([self._act(point, player) for point, player in self._level])
            for turn in turns:
                await self._follow(*self._level.popleft(), turn)
            self._level, self._next = self._next, self._level
            if len(self.lines) > MAX_LINES:
                raise ConfigurationError(f"over {MAX_LINES} lines of play: too many for a certificate")
            if on_progress is not None:
                share = sum((line.chance for line in self.lines), Fraction(0)) / len(tree.seats)
                on_progress(Progress(len(self.decisions), len(self.lines), float(share)))

    async def _act(self, point: Point, player: Player) -> Turn | None:
        if self._gate is None:
            return await player.act(point.messages)
        async with self._gate:
            return await player.act(point.messages)

    async def _follow(self, point: Point, player: Player, turn: Turn | None) -> None:
        """Take up everything that follows a turn."""
        after = [replace(point, end=StopReason.TRUNCATED)] if turn is None else self._rules.after(point, turn)
        self.decisions.append(Decision(point, turn, after))
        going_on = [item for item in after if item.end is None]
        self.lines += [self._rules.line(item) for item in after if item.end is not None]
        turns = point.turns if turn is None else (*point.turns, turn)
        self._next += zip(going_on, await player.branch(turns, len(going_on)), strict=True)

    async def aclose(self) -> None:
        """Close the sessions that are still open."""
        await asyncio.gather(*(player.aclose() for _, player in (*self._level, *self._next)))


async def _all(asking: Sequence[Coroutine[Any, Any, Turn | None]]) -> list[Turn | None]:
    """All turns; when one fails, the others are cancelled and awaited first."""
    tasks = [asyncio.ensure_future(one) for one in asking]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
