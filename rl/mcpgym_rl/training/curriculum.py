"""Which episodes a batch is made of.

Ordinary groups take the split's tasks one after the other, so a batch spans whatever the environment spreads over
consecutive tasks (for games, the opponents' strength). Once there is a certificate, some groups begin in its lines:
the opponent steers into a line that the greedy policy lost, and the policy's own earlier turns are given up to the
point from which it chooses anew: mostly the decision that gave the game away. That is fair play: the opponent is an
adversary, and every move is the policy's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from mcpgym.tasks import derive_seed
from mcpgym_rl.certificate import Certification, Choice
from mcpgym_rl.policy import Tokens, Turn
from mcpgym_rl.run import EpisodeSpec
from mcpgym_rl.training.sections import LineGroups, Rl


@dataclass(frozen=True, slots=True)
class Plan:
    """The episodes of one batch, and the group of each."""

    specs: list[EpisodeSpec]
    groups: list[int]
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KnownLine:
    """A line of the last certificate that training may begin in: the policy's seat, the moves of both, its turns.

    ``cost`` is what is lost by its last turn, ``missed_win`` whether that could have forced a win; ``survived`` counts
    the certificates before it in which the line was there too. ``doubt`` is the chance that the policy, sampled at
    temperature 1, says something else in its last turn; 1 where it states no chances.
    """

    seat: str
    acts: Sequence[str]
    turns: Sequence[Turn]
    cost: float = 1.0
    missed_win: bool = False
    survived: int = 0
    doubt: float = 1.0


@dataclass(slots=True)
class Lines:
    """What the last certificate left to learn: open lines, weak ones, and those of which the policy is not sure.

    Open are those that end with a decision that gave the game away or was refused, however many lines were lost by it,
    and whole those that were lost or left unfinished without one. Weak ones end with a decision that cost wins, and
    ``unsure`` ones with any.
    """

    open: list[KnownLine] = field(default_factory=list)
    weak: list[KnownLine] = field(default_factory=list)
    unsure: list[KnownLine] = field(default_factory=list)

    def learn(self, found: Certification, *, unsure: bool = False) -> None:
        """Take over the lines of a new certificate; those that end with any decision only if ``unsure``."""
        before, weak = _survived(self.open), _survived(self.weak)
        faults = {(point.seat, point.acts) for point in found.faults}
        self.open = [_known(point, before) for point in found.faults]
        for line in found.lines:
            begun = (line.acts[:count] for count in range(len(line.acts) + 1))
            if line.outcome in ("loss", None) and not any((line.seat, acts) in faults for acts in begun):
                survived = before.get((line.seat, line.acts), 0)
                self.open.append(KnownLine(line.seat, line.acts, _own(line.turns), survived=survived))
        self.weak = [_known(point, weak) for point in found.weak]
        every = (*found.faults, *found.weak, *found.right) if unsure else ()
        self.unsure = [
            KnownLine(point.seat, point.acts, _own(point.turns), doubt=_doubt(point.turns[-1])) for point in every
        ]


def _doubt(turn: Turn) -> float:
    return 1.0 if turn.tokens is None else -math.expm1(math.fsum(last_turn(turn.tokens).logprobs))


def _known(point: Choice, before: Mapping[tuple[str, tuple[str, ...]], int]) -> KnownLine:
    survived = before.get((point.seat, point.acts), 0)
    return KnownLine(point.seat, point.acts, _own(point.turns), point.cost, point.missed_win, survived)


def _survived(lines: Sequence[KnownLine]) -> dict[tuple[str, tuple[str, ...]], int]:
    """How many certificates each line will have survived, should it be in the next one."""
    return {(line.seat, tuple(line.acts)): line.survived + 1 for line in lines}


LineTask = Callable[[str, Sequence[str], float, Sequence[Sequence[str]]], str]
"""The id of the task that steers into a line: seat, moves, how often its opponent moves at random off all lines, and
the lines that it steers into where the game has left the first."""
OTHERS = 32
"""How many of those there are at most."""


def plan_batch(
    rl: Rl,
    environment: str,
    config: Mapping[str, Any],
    size: int,
    seed: int,
    step: int,
    lines: Lines,
    line_task: LineTask | None = None,
    *,
    groups: int | None = None,
    first_task: int | None = None,
) -> Plan:
    """The batch of ``step``: a function of the arguments alone, so that a resumed run plays the same episodes.

    Args:
        rl: how many groups, and of what.
        environment: its name.
        config: its configuration.
        size: how many tasks the split has.
        seed: of the run.
        step: from 0.
        lines: what the last certificate left; empty before the first.
        line_task: names the tasks that steer into lines; None where the game has no tree.
        groups: how many groups; as many as the recipe says by default.
        first_task: the first ordinary task; by default as if all batches before had been made of ordinary ones.
    """
    groups = rl.groups if groups is None else groups
    first_task = step * groups if first_task is None else first_task
    random = Random(derive_seed("batch", seed, step))
    curriculum = rl.curriculum
    opened = weak = unsure = 0
    firsts: list[EpisodeSpec] = []
    if line_task is not None:
        most = round(groups * curriculum.open_share)
        opened = min(most, math.ceil(len(lines.open) * curriculum.groups_per_open_line))
        weak = min(round(groups * curriculum.weak_share), groups - opened) if lines.weak else 0
        chosen = [(curriculum.open, line) for line in _spread(lines.open, opened, random)]
        costs = [line.cost * (curriculum.missed_win_weight if line.missed_win else 1.0) for line in lines.weak]
        chosen += [(curriculum.weak, line) for line in _drawn(lines.weak, costs, weak, random)]
        doubts = [line.doubt for line in lines.unsure]
        unsure = min(round(groups * curriculum.unsure_share), groups - opened - weak) if any(doubts) else 0
        chosen += [(curriculum.unsure, line) for line in _drawn(lines.unsure, doubts, unsure, random)]
        for kind, line in chosen:
            others = [other.acts for other in lines.open if other.seat == line.seat] if kind is curriculum.open else []
            others = random.sample(others, min(OTHERS, len(others)))
            firsts.append(_line_spec(kind, line, others, line_task, environment, config, random))
    ordinary = groups - opened - weak - unsure
    for place in range(ordinary):
        index = (first_task + place) % size
        seed_here = _episode_seed(random)
        firsts.append(EpisodeSpec(environment, split=rl.split, index=index, seed=seed_here, config=config))
    specs = [replace(first, repeat=repeat) for first in firsts for repeat in range(rl.group_size)]
    members = [group for group in range(len(firsts)) for _ in range(rl.group_size)]
    return Plan(specs, members, {"open": opened, "weak": weak, "unsure": unsure, "ordinary": ordinary})


def groups_for(rl: Rl, signal: float) -> int:
    """How many groups the next batch has, where this share of groups had rewards that differ."""
    if not rl.signal_groups:
        return rl.groups
    wanted = round(rl.signal_groups / max(signal, 1e-3))
    return min(max(rl.groups, rl.max_groups), max(rl.groups, wanted))


def _own(turns: Sequence[Turn]) -> list[Turn]:
    """The turns with their own ids alone, not the whole context before them: what a session needs of given ones."""
    return [
        Turn(turn.message, turn.finish, tokens=None if turn.tokens is None else last_turn(turn.tokens))
        for turn in turns
    ]


def last_turn(tokens: Tokens) -> Tokens:
    """The last turn in ``tokens``: the ids that end it and were sampled without a break."""
    start = len(tokens.ids)
    while start and tokens.mask[start - 1]:
        start -= 1
    return Tokens(tokens.ids[start:], tokens.mask[start:], tokens.logprobs[start:])


def _spread(lines: Sequence[KnownLine], count: int, random: Random) -> list[KnownLine]:
    """``count`` of the lines, each as often as the others, give or take one."""
    chosen: list[KnownLine] = []
    while len(chosen) < count:
        chosen += random.sample(lines, min(len(lines), count - len(chosen)))
    return chosen


def _drawn(lines: Sequence[KnownLine], weights: Sequence[float], count: int, random: Random) -> list[KnownLine]:
    """``count`` of the lines, each drawn by its weight; there may be none where none is drawn."""
    return random.choices(lines, weights, k=count) if count else []


def _line_spec(
    kind: LineGroups,
    line: KnownLine,
    others: Sequence[Sequence[str]],
    line_task: LineTask,
    environment: str,
    config: Mapping[str, Any],
    random: Random,
) -> EpisodeSpec:
    """The line from one of its turns on: the policy's turns before that one are given."""
    count = len(line.turns)
    back = 0 if line.missed_win else random.choices(range(len(kind.turns_back)), kind.turns_back)[0]
    given = line.turns[: max(0, count - 1 - back)]
    perfect = line.missed_win or random.random() < kind.perfect_share
    low, high = kind.random_moves
    strength = 0.0 if perfect else round(low + (high - low) * random.random(), 2)
    heat = min(kind.temperature + kind.temperature_step * line.survived, kind.max_temperature)
    return EpisodeSpec(
        environment,
        task=line_task(line.seat, line.acts, strength, others),
        seed=_episode_seed(random),
        config=config,
        given=given,
        temperatures=(heat,) if random.random() < kind.hot_share else (),
    )


def _episode_seed(random: Random) -> int:
    return random.getrandbits(31)
