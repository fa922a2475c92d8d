"""Exact values beyond tic-tac-toe: Nim by hand, and every reason for which there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from nim_toy import Nim, NimConfig, NimTree, take
from rl_toys import Counter as NoGame

from mcpgym import Message, Task
from mcpgym.game_tree import LegalCall, Mixture
from mcpgym_rl.exact import Exact, NoExactValue, exact_outcomes
from mcpgym_rl.policies.reference import Reference


class Stated:
    """Takes 1 or 2 stones by these chances."""

    def __init__(self, *chances: tuple[Fraction, int]) -> None:
        self.chances = chances

    def __call__(self, messages: Sequence[Message], random: Random) -> Message:
        return take(1)

    def choices(self, state: Any) -> list[tuple[Fraction, LegalCall]]:
        return [(chance, LegalCall("take", {"count": min(count, state.stones)})) for chance, count in self.chances]


class OpenNim(Nim):
    """Nim whose opponents are as strong as a task's index says, in tenths."""

    def game_tree(self) -> NimTree:
        class Tree(NimTree):
            def opponent(self, task: Task) -> Mixture:
                return Mixture("first", Fraction(task.info["index"], 10))

        return Tree(self)


def exact(environment: Nim, *chances: tuple[Fraction, int], tasks: dict[str, int] | None = None, **more: Any) -> Exact:
    policy = Reference("stated", Stated(*chances))
    return asyncio.run(exact_outcomes(policy, environment, tasks or {"test-3": 1}, **more))


HALF, ONE = Fraction(1, 2), Fraction(1)


def test_a_game_worked_out_by_hand() -> None:
    """Three stones. Taking one leaves two: the perfect opponent takes both, the random one in half of all games.
    Taking two leaves one, which it takes."""
    nim = OpenNim(NimConfig(stones=3))
    assert exact(nim, (ONE, 2)).outcomes == {"win": 0, "draw": 0, "loss": 1, "unfinished": 0}
    assert exact(nim, (ONE, 1)).outcomes["win"] == Fraction(3, 10) / 2
    assert exact(nim, (HALF, 1), (HALF, 2)).outcomes["win"] == Fraction(3, 10) / 4
    many = exact(nim, (ONE, 1), tasks={"test-0": 1, "train-9": 3})
    assert many.outcomes["win"] == Fraction(3, 4) * Fraction(9, 10) / 2
    assert (many.episodes, many.tasks, many.by_seat["second"]) == (4, 2, None)


def test_a_chance_of_nothing_is_not_followed() -> None:
    assert exact(OpenNim(NimConfig(stones=3)), (ONE, 1), (Fraction(0), 99)).outcomes["win"] == Fraction(3, 20)


def test_turns_run_out() -> None:
    nim = OpenNim(NimConfig(stones=6, turns=2))
    assert exact(nim, (ONE, 1)).outcomes["unfinished"] > 0
    assert exact(nim, (ONE, 1), max_turns=1).outcomes["unfinished"] == 1


@pytest.mark.parametrize(
    ("environment", "chances", "why"),
    [
        (Nim(NimConfig(stones=3)), [(ONE, 1)], "does not say who the opponent of test-3 is"),
        (OpenNim(NimConfig(stones=3)), [(HALF, 1)], "the chances that the policy states"),
        (OpenNim(NimConfig(stones=3)), [(2 * ONE, 1), (-ONE, 2)], "the chances that the policy states"),
        (NoGame(), [(ONE, 1)], "gives no game tree"),
    ],
)
def test_why_there_is_none(environment: Any, chances: Any, why: str) -> None:
    with pytest.raises(NoExactValue, match=why):
        exact(environment, *chances)


def test_no_episode_has_no_value() -> None:
    with pytest.raises(NoExactValue, match="no episode"):
        asyncio.run(exact_outcomes(Reference("stated", Stated((ONE, 1))), OpenNim(), {}))


def test_a_policy_that_plays_equal_positions_in_two_ways_is_found_out() -> None:
    class Blurred(NimTree):
        def key(self, state: Any) -> Any:
            return state.outcome

        def opponent(self, task: Task) -> Mixture:
            return Mixture("first", HALF)

    class Fickle(Stated):
        def choices(self, state: Any) -> list[tuple[Fraction, LegalCall]]:
            self.chances = ((ONE, 1),) if state.stones % 2 else ((HALF, 1), (HALF, 2))
            return super().choices(state)

    class BlurredNim(Nim):
        def game_tree(self) -> NimTree:
            return Blurred(self)

    nim = BlurredNim(NimConfig(stones=6, most=2, turns=3))
    with pytest.raises(NoExactValue, match="other chances"):
        asyncio.run(exact_outcomes(Reference("fickle", Fickle()), nim, {"test-0": 1}))
