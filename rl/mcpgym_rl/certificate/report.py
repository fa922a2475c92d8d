"""The certificate that is made of all lines: ``certificate.json``.

All chances are exact: they are summed as fractions, stand as fractions under ``exact``, and as numbers beside it. The
same policy gives the same bytes, so two certificates can be compared as files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from mcpgym import __version__
from mcpgym.environment import Environment
from mcpgym_rl.certificate.lines import Line, Point, Rules
from mcpgym_rl.certificate.values import GUARANTEED, GUARANTEES, NEVER_LOSES, Value, Values, average, value_at
from mcpgym_rl.policy import Policy, Turn

SCHEMA = "mcpgym.certificate/1"
WORST_DECISIONS = 100
"""How many decisions the certificate lists at most, the costliest first."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the policy did at one point (None: the conversation was too long), and all that can follow."""

    point: Point
    turn: Turn | None
    after: Sequence[Point]


@dataclass(frozen=True, slots=True)
class Played:
    """Everything that a certificate is made of."""

    policy: Policy
    environment: Environment[Any, Any, Any]
    rules: Rules
    values: Values
    lines: Sequence[Line]
    decisions: Sequence[Decision]
    seed: int | None
    twice: bool


def report(played: Played, weighed: Sequence[Weighed]) -> dict[str, Any]:
    """The certificate, ready for ``certificate.json``."""
    environment, tree = played.environment, played.rules.tree
    seats = {seat: _of_seat(played, seat) for seat in tree.seats}
    lost = [line for line in played.lines if line.outcome == "loss"]
    unfinished = [line for line in played.lines if line.outcome is None]
    optimum = _mean([_shares_of(played.values.starts[seat]) for seat in tree.seats])
    random = _mean([_shares(played, seat, "random") for seat in tree.seats])
    return {
        "schema": SCHEMA,
        "certified": not lost and not unfinished,
        **_counts(played.lines, played.decisions),
        "versus_random": _exact(random),
        "versus_perfect": _exact(_mean([_shares(played, seat, "perfect") for seat in tree.seats])),
        "optimum": _exact(optimum),
        "distance": float(optimum["win"] - random["win"]),
        "by_seat": seats,
        "shortest_loss": _shown(played, lost),
        "shortest_unfinished": _shown(played, unfinished),
        **_regrets(played, weighed),
        "environment": environment.name,
        "environment_version": environment.version,
        "schema_hash": environment.schema_hash,
        "config": environment.config.model_dump(mode="json"),
        "policy": played.policy.name,
        "policy_hash": _policy_hash(played.policy),
        "policy_seed": played.seed,
        "asked_twice": played.twice,
        "answers_hash": _answers_hash(played.lines),
        "mcpgym": __version__,
        "games": [f"{line.seat}: {' '.join(line.acts)} = {line.outcome or 'unfinished'}" for line in played.lines],
    }


Shares = dict[str, Fraction]


def _counts(lines: Sequence[Line], decisions: Sequence[Decision]) -> dict[str, int]:
    """Lines by how they ended, and what was decided at how many points. An invalid move that many lines share counts
    once."""
    ends = [line.outcome for line in lines]
    return {
        "lines": len(lines),
        "won_lines": ends.count("win"),
        "drawn_lines": ends.count("draw"),
        "lost_lines": ends.count("loss"),
        "unfinished_lines": ends.count(None),
        "decisions": len(decisions),
        "invalid_moves": sum(map(_invalid, decisions)),
    }


def _invalid(decision: Decision) -> int:
    """How many calls of a decision were refused or malformed, each counted once for each game so far that it ends."""
    before = decision.point.invalid_moves
    return max((after.invalid_moves - before for after in decision.after), default=0)


def _of_seat(played: Played, seat: str) -> dict[str, Any]:
    lines = [line for line in played.lines if line.seat == seat]
    decisions = [decision for decision in played.decisions if decision.point.seat == seat]
    optimum = played.values.starts[seat]
    return {
        **_counts(lines, decisions),
        "guaranteed": _worst(lines),
        "versus_random": _exact(_shares(played, seat, "random")),
        "versus_perfect": _exact(_shares(played, seat, "perfect")),
        "optimum": {"guaranteed": _name(optimum.guaranteed), **_exact(_shares_of(optimum))},
    }


def _worst(lines: Sequence[Line]) -> str:
    """The worst that happens on any line: ``win``, ``draw``, ``loss`` or ``unfinished``."""
    worst = min(lines, key=lambda line: (GUARANTEES[line.outcome], line.outcome is not None))
    return worst.outcome or "unfinished"


def _name(guaranteed: int) -> str:
    return GUARANTEED[guaranteed]


def _shares(played: Played, seat: str, opponent: str) -> Shares:
    """How the games in a seat end, by the chances of an opponent."""
    shares: Shares = dict.fromkeys(("win", "draw", "loss", "unfinished"), Fraction(0))
    for line in played.lines:
        if line.seat == seat:
            shares[line.outcome or "unfinished"] += getattr(line.chances, opponent)
    return shares


def _shares_of(value: Value) -> Shares:
    return {"win": value.win, "draw": value.draw, "loss": value.loss, "unfinished": Fraction(0)}


def _mean(shares: Sequence[Shares]) -> Shares:
    """The seats together, each as likely as the others."""
    return {name: sum((share[name] for share in shares), Fraction(0)) / len(shares) for name in shares[0]}


def _exact(shares: Shares) -> dict[str, Any]:
    numbers: dict[str, Any] = {name: float(share) for name, share in shares.items()}
    return {**numbers, "exact": {name: str(share) for name, share in shares.items()}}


def _shown(played: Played, lines: Sequence[Line]) -> dict[str, Any] | None:
    """The shortest of some lines, with every position of it as text for people; None where there are none."""
    if not lines:
        return None
    tree = played.rules.tree
    line = min(lines, key=lambda line: (len(line.acts), len(line.turns)))
    positions = [tree.draw(line.seat, line.acts[:count]) for count in range(len(line.acts) + 1)]
    return {
        "seat": line.seat,
        "moves": [f"{mover} {act}" for mover, act in zip(line.movers, line.acts, strict=True)],
        "task": line.task,
        "stop_reason": str(line.stop_reason),
        "invalid_moves": line.invalid_moves,
        "positions": positions,
    }


@dataclass(frozen=True, slots=True)
class Weighed:
    """What a decision cost. ``before`` and ``after`` are the values of its position and of what it led to, ``reached``
    is the chance of the position under random play, over both seats."""

    decision: Decision
    before: Value
    after: Value
    reached: Fraction

    @property
    def blunder(self) -> bool:
        """Whether it gave away what was safe: a game that could not be lost before can be lost after it."""
        return self.before.guaranteed >= NEVER_LOSES > self.after.guaranteed

    @property
    def regret(self) -> Fraction:
        """The chance to win against random play that it gave away; negative where it took a risk the best does not."""
        return self.before.win - self.after.win


def weigh(played: Played) -> list[Weighed]:
    """The decisions that are not the best, the costliest first: blunders, then by regret times reached."""
    seats = len(played.rules.tree.seats)
    found = []
    for decision in played.decisions:
        point = decision.point
        before = value_at(played.values, played.rules, point)
        weighed = Weighed(decision, before, _value_after(played, decision), point.chances.random / seats)
        if weighed.regret or before.guaranteed > weighed.after.guaranteed:
            found.append(weighed)

    def cost(item: Weighed) -> Any:
        point = item.decision.point
        return not item.blunder, -abs(item.regret * item.reached), point.seat, point.acts, len(point.turns)

    return sorted(found, key=cost)


def _regrets(played: Played, weighed: Sequence[Weighed]) -> dict[str, Any]:
    """What the policy's decisions cost, and the costliest of them.

    Regret times ``reached``, the chance of the position, add up over all decisions in both seats to ``distance``.
    """
    listed = [_regret(played, item) for item in weighed[:WORST_DECISIONS]]
    return {"blunders": sum(item.blunder for item in weighed), "suboptimal": len(weighed), "regrets": listed}


def _value_after(played: Played, decision: Decision) -> Value:
    reached = decision.point.chances.random
    return average(
        (after.chances.random / reached, value_at(played.values, played.rules, after)) for after in decision.after
    )


def _regret(played: Played, item: Weighed) -> dict[str, Any]:
    point = item.decision.point
    own = {after.acts[len(point.acts)] for after in item.decision.after if len(after.acts) > len(point.acts)}
    return {
        "seat": point.seat,
        "acts": list(point.acts),
        "played": own.pop() if own else None,
        "best": played.values.best(point.state, played.rules.left(point)),
        "blunder": item.blunder,
        "guaranteed": [_name(item.before.guaranteed), _name(item.after.guaranteed)],
        "win": [float(item.before.win), float(item.after.win)],
        "regret": float(item.regret),
        "reached": float(item.reached),
    }


def _policy_hash(policy: Policy) -> str | None:
    """The hash of a policy's weights and tokenizer, where it has them."""
    for owner in (policy, getattr(policy, "directory", None)):
        if isinstance(said := getattr(owner, "hash", None), str):
            return said
    return None


def _answers_hash(lines: Iterable[Line]) -> str:
    """Equal for policies that say the same on every line: the SHA-256 of all transcripts, without the ids of calls."""
    told = []
    for line in lines:
        said = [[m["role"], m["content"], [c["function"] for c in m.get("tool_calls", ())]] for m in line.messages]
        told.append(json.dumps([line.seat, line.acts, str(line.stop_reason), said], sort_keys=True))
    return hashlib.sha256("\n".join(sorted(told)).encode()).hexdigest()
