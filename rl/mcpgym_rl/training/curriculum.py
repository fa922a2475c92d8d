"""Which episodes a batch is made of.

Ordinary groups take the split's tasks one after the other, so a batch spans whatever the environment spreads over
consecutive tasks (for games, the opponents' strength). Once there is a certificate, some groups begin in its lines:
the opponent steers into a line that the greedy policy lost, and the policy's own earlier turns are given up to the
point from which it chooses anew. That is fair play: the opponent is an adversary, and every move is the policy's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from mcpgym.tasks import derive_seed
from mcpgym_rl.certificate import Line
from mcpgym_rl.policy import Tokens, Turn
from mcpgym_rl.run import EpisodeSpec
from mcpgym_rl.training.recipe import Rl


@dataclass(frozen=True, slots=True)
class Plan:
    """The episodes of one batch, and the group of each."""

    specs: list[EpisodeSpec]
    groups: list[int]
    kinds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KnownLine:
    """A line of the last certificate that training may begin in. ``survived`` counts the certificates before it in
    which the line was lost too."""

    task: str
    turns: Sequence[Turn]
    survived: int = 0


@dataclass(slots=True)
class Lines:
    """What the last certificate left to learn: lost (or unfinished) lines, and drawn ones."""

    lost: list[KnownLine] = field(default_factory=list)
    drawn: list[KnownLine] = field(default_factory=list)

    def learn(self, lines: Sequence[Line]) -> None:
        """Take over the lines of a new certificate."""
        before = {line.task: line.survived for line in self.lost}
        lost = [line for line in lines if line.outcome in ("loss", None)]
        self.lost = [KnownLine(line.task, _own(line.turns), before.get(line.task, -1) + 1) for line in lost]
        self.drawn = [KnownLine(line.task, _own(line.turns)) for line in lines if line.outcome == "draw"]


def plan_batch(
    rl: Rl, environment: str, config: Mapping[str, Any], size: int, seed: int, step: int, lines: Lines
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
    """
    random = Random(derive_seed("batch", seed, step))
    lost = _lost_groups(rl, lines)
    drawn = round(rl.groups * rl.curriculum.drawn_share) if lines.drawn else 0
    ordinary = rl.groups - lost - drawn
    known = _spread(lines.lost, lost, random) + _spread(lines.drawn, drawn, random)
    firsts = [_line_spec(rl, environment, config, line, random) for line in known]
    for place in range(ordinary):
        index = (step * rl.groups + place) % size
        seed_here = _episode_seed(random)
        firsts.append(EpisodeSpec(environment, split=rl.split, index=index, seed=seed_here, config=config))
    specs = [replace(first, repeat=repeat) for first in firsts for repeat in range(rl.group_size)]
    groups = [group for group in range(len(firsts)) for _ in range(rl.group_size)]
    return Plan(specs, groups, {"lost": lost, "drawn": drawn, "ordinary": ordinary})


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


def _lost_groups(rl: Rl, lines: Lines) -> int:
    most = round(rl.groups * rl.curriculum.lost_share)
    return min(most, round(len(lines.lost) * rl.curriculum.groups_per_lost_line))


def _spread(lines: Sequence[KnownLine], count: int, random: Random) -> list[KnownLine]:
    """``count`` of the lines, each as often as the others, give or take one."""
    chosen: list[KnownLine] = []
    while len(chosen) < count:
        chosen += random.sample(lines, min(len(lines), count - len(chosen)))
    return chosen


def _line_spec(rl: Rl, environment: str, config: Mapping[str, Any], line: KnownLine, random: Random) -> EpisodeSpec:
    """The line from its beginning, or from one of its turns."""
    curriculum = rl.curriculum
    given: Sequence[Turn] = ()
    temperatures: tuple[float, ...] = ()
    if len(line.turns) > 1 and random.random() < curriculum.resume_share:
        given = line.turns[: random.randrange(1, len(line.turns))]
    hotter = curriculum.first_temperature + curriculum.temperature_step * line.survived
    temperatures = (min(hotter, curriculum.max_temperature),)
    return EpisodeSpec(
        environment, task=line.task, seed=_episode_seed(random), config=config, given=given, temperatures=temperatures
    )


def _episode_seed(random: Random) -> int:
    return random.getrandbits(31)
