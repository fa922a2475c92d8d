"""Advantages compare like with like: a group, or within it the rollouts that came to the same turn in the same way."""

from __future__ import annotations

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym.messages import Message, assistant, tool_answer, tool_call, user
from mcpgym_rl.traces import Trace, TraceScore
from mcpgym_rl.training.advantages import group_advantages, turn_advantages

REWARDS = st.lists(st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.3, 0.5, 0.7, 1.0])), min_size=1, max_size=24)


def trace(*moves: tuple[int, str], given_turns: int = 0) -> Trace:
    """A rollout whose turns call play with a cell and read an answer."""
    messages: list[Message] = [user("go")]
    for number, (cell, answer) in enumerate(moves):
        call = tool_call(f"call_{number}", "play", json.dumps({"position": cell}))
        messages += [assistant(f"thought {len(messages)}{cell}", [call]), tool_answer(call, answer)]
    return Trace(
        environment="game",
        environment_version="1",
        task="t",
        split="train",
        seed=0,
        config={},
        schema_hash="",
        policy="p",
        messages=messages,
        calls=[],
        stop_reason="done",
        score=TraceScore(0.0),
        prompt_messages=1,
        turns=len(moves),
        given_turns=given_turns,
    )


def test_a_group_by_hand() -> None:
    made = group_advantages([1.0, 0.0, 0.5, 0.5, None, 3.0], ["a", "a", "a", "b", "a", "c"])
    assert made == [0.5, -0.5, 0.0, 0.0, None, 0.0]


def test_a_group_over_its_standard_deviation_by_hand() -> None:
    made = group_advantages([1.0, 0.0, 1.0, 0.0], [0, 0, 0, 0], scale="std")
    assert made == pytest.approx([1.0, -1.0, 1.0, -1.0])


@given(REWARDS, st.data())
def test_an_unscored_rollout_has_no_advantage_and_equal_rewards_give_exactly_zero(
    rewards: list[float | None], data: st.DataObject
) -> None:
    groups = data.draw(st.lists(st.integers(0, 3), min_size=len(rewards), max_size=len(rewards)))
    scale = data.draw(st.sampled_from(["none", "std"]))
    made = group_advantages(rewards, groups, scale=scale)
    for group in set(groups):
        known = [r for r, g in zip(rewards, groups, strict=True) if g == group and r is not None]
        own = [a for r, a, g in zip(rewards, made, groups, strict=True) if g == group and r is not None]
        if len(set(known)) <= 1:
            assert own == [0.0] * len(known)
        else:
            assert sum(a for a in own if a is not None) == pytest.approx(0, abs=1e-9)
            if scale == "std":
                assert statistics.pstdev(a for a in own if a is not None) == pytest.approx(1)
    assert [r is None for r in rewards] == [a is None for a in made]


def test_turns_are_compared_with_rollouts_that_came_there_in_the_same_way() -> None:
    traces = [
        trace((4, "O 0"), (8, "over")),
        trace((4, "O 0"), (2, "over")),
        trace((4, "O 0"), (2, "over")),
        trace((1, "O 4"), (7, "over")),
    ]
    made = turn_advantages(traces, [1.0, 0.0, 0.5, 0.0], [0, 0, 0, 0], prior=1)
    # at the first turn each against the mean of the three others
    assert [turns and turns[0] for turns in made] == pytest.approx([1 - 0.5 / 3, -0.5, 0.5 - 1 / 3, -0.5])
    # after 4 and O 0 three rollouts stand alike: the mean of the two others, and the turn before counted once
    second = [1 - (0.5 + 0.5 / 3) / 3, -(1.5 + 0.5) / 3, 0.5 - (1.0 + 1 / 3) / 3, -0.5]
    assert [turns and turns[1] for turns in made] == pytest.approx(second)


def test_without_a_prior_a_turn_is_compared_with_its_like_alone_and_one_without_like_keeps_what_it_had() -> None:
    traces = [trace((4, "a"), (1, "x")), trace((4, "a"), (2, "x")), trace((5, "a"), (3, "x"))]
    made = turn_advantages(traces, [1.0, 0.0, 0.0], [0, 0, 0], prior=0)
    assert made == [[1.0, 1.0], [-0.5, -1.0], [-0.5, -0.5]]


def test_thoughts_do_not_tell_states_apart_but_answers_do() -> None:
    alike = turn_advantages([trace((4, "a"), (1, "x")), trace((4, "a"), (2, "x"))], [1.0, 0.0], [0, 0], prior=0)
    assert alike == [[1.0, 1.0], [-1.0, -1.0]]
    traces = [trace((4, "a"), (1, "x")), trace((4, "b"), (2, "x")), trace((4, "b"), (3, "x"))]
    apart = turn_advantages(traces, [1.0, 0.0, 0.5], [0, 0, 0], prior=0)
    assert apart == [[0.75, 0.75], [-0.75, -0.5], [0.0, 0.5]]


def test_given_turns_have_no_advantage_and_other_groups_do_not_count() -> None:
    traces = [trace((4, "a"), (1, "x"), given_turns=1), trace((4, "a"), (2, "x"), given_turns=1), trace((4, "a"))]
    assert turn_advantages(traces, [1.0, 0.0, 5.0], [0, 0, 1]) == [[1.0], [-1.0], [0.0]]


def test_an_unscored_rollout_neither_has_turns_nor_moves_a_baseline() -> None:
    traces = [trace((4, "a")), trace((1, "a")), trace((2, "a"))]
    assert turn_advantages(traces, [1.0, None, 0.0], [0, 0, 0]) == [[1.0], None, [-1.0]]


def test_a_turn_to_which_too_few_others_came_has_no_advantage() -> None:
    came = [(4, "O 0"), (4, "O 0"), (4, "O 0"), (1, "O 4")]
    traces = [trace(first, (cell, "over")) for first, cell in zip(came, (8, 2, 2, 7), strict=True)]
    rewards, groups = [1.0, 0.0, 0.5, 0.0], [0, 0, 0, 0]
    whole = turn_advantages(traces, rewards, groups)
    for least, second in ((1, 3), (2, 3), (3, 0)):  # after 4 and O 0 each of three has two others, after 1 it has none
        made = turn_advantages(traces, rewards, groups, least=least)
        kept = [turns if place < second else [turns[0], 0.0] for place, turns in enumerate(whole) if turns]
        assert made == kept
    assert turn_advantages(traces, rewards, groups, least=4) == [[0.0, 0.0]] * 4


@given(st.lists(st.sampled_from([0.1, 0.3, 0.7]), min_size=2, max_size=8), st.floats(0, 3))
def test_equal_rewards_give_exactly_zero_at_every_turn(rewards: list[float], prior: float) -> None:
    traces = [trace((place % 3, "a"), (place % 2, "b"), (4, "c")) for place in range(len(rewards))]
    equal = [rewards[0]] * len(rewards)
    assert turn_advantages(traces, equal, [0] * len(rewards), prior=prior) == [[0.0] * 3] * len(rewards)
