"""Guards stop a run that cannot learn, and say what to do; a healthy one they leave alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from test_advantages import trace

from mcpgym.rewards import Reward
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceCall, TraceError
from mcpgym_rl.training.guards import NothingLeft, TrainingStopped, Watch, invalid_share
from mcpgym_rl.training.rewarding import all_perfect
from mcpgym_rl.training.sections import Guards, Rewards

PLAYED = replace(trace((4, "fine")), calls=[TraceCall("play", {}, "fine", False, 0.1)])


def refused(count: int) -> Trace:
    made = trace(*[(4, "taken")] * count)
    messages = [{**message, "is_error": True} if message["role"] == "tool" else message for message in made.messages]
    return replace(made, messages=messages, calls=[TraceCall("play", {}, "taken", True, 0.1)])  # type: ignore[arg-type]


def test_a_healthy_run_is_left_alone() -> None:
    watch = Watch()
    assert all(watch.batch([PLAYED] * 4, 0.5, Guards()) is None for _ in range(50))


def test_a_policy_that_calls_no_tool_in_its_first_batch_is_stopped_and_told_to_warm_up() -> None:
    with pytest.raises(TrainingStopped, match=r"no tool call in the first batch.*warm_up"):
        Watch().batch([trace((4, "x"))], 0.0, Guards())


def test_prompts_that_fill_the_models_context_are_not_taken_for_a_policy_that_calls_nothing() -> None:
    with pytest.raises(TrainingStopped, match="the model's context is too short"):
        Watch().batch([replace(trace(), stop_reason=StopReason.TRUNCATED)] * 4, 0.0, Guards())


def test_where_there_are_no_tools_none_is_missed() -> None:
    watch = Watch()
    assert watch.batch([trace((4, "x"))], 0.5, Guards(), tools=False) is None
    assert watch.batch([trace()], 0.5, Guards(), tools=False) is None


def test_no_signal_for_so_many_batches_in_a_row_stops_the_run_and_one_with_signal_begins_the_count_anew() -> None:
    watch, guards = Watch(), Guards(no_signal_batches=3)
    for signal in (0.0, 0.0, 0.1, 0.0, 0.0):
        watch.batch([PLAYED], signal, guards)
    with pytest.raises(TrainingStopped, match="no group of the last 3 batches"):
        watch.batch([PLAYED], 0.0, guards)


def test_perfect_batches_in_a_row_end_the_run_well_and_equal_ones_that_are_not_perfect_do_not() -> None:
    watch, guards = Watch(), Guards(no_signal_batches=3)
    for signal, perfect in ((0.0, True), (0.0, True), (0.2, False), (0.0, True), (0.0, True)):
        watch.batch([PLAYED], signal, guards, perfect=perfect)
    with pytest.raises(NothingLeft, match="the last 3 batches had the highest reward"):
        watch.batch([PLAYED], 0.0, guards, perfect=True)
    watch = Watch(perfect=2, without_signal=2)
    with pytest.raises(TrainingStopped, match="nothing to learn from") as stopped:
        watch.batch([PLAYED], 0.0, guards, perfect=False)
    assert not isinstance(stopped.value, NothingLeft)


@pytest.mark.parametrize(
    ("rewards", "worths", "perfect"),
    [
        ({}, [2.1, 2.1], True),  # 2 for the most of `won`, 0.1 for the least of `slow`
        ({}, [2.1, 2.0], False),
        ({}, [2.1, None], False),
        ({"game_outcome": {"win": 1.0, "loss": -1.0}}, [1.0], True),
        ({"game_outcome": {"win": 1.0, "loss": -1.0}, "components": {"won": 0.5}}, [1.0], False),
        ({"game_outcome": {"win": 1.0, "loss": -1.0}, "components": {"won": 0.5}}, [1.5], True),
        ({"components": {"won": 0.0}}, [0.0], False),  # whatever it does is worth the same
        ({"components": {"other": 1.0}}, [9.0], False),
    ],
)
def test_rollouts_are_perfect_when_nothing_could_be_worth_more(
    rewards: dict[str, Any], worths: list[float | None], perfect: bool
) -> None:
    own = {
        "won": Reward("won", float, 2.0, 0.0, 1.0, "", ()),
        "slow": Reward("slow", float, -0.1, -1.0, 1.0, "", ()),
        "seen": Reward("seen", float, 0.0, 0.0, 9.0, "", ()),
    }
    assert all_perfect(worths, own, Rewards(**rewards)) is perfect


def test_case_29_a_batch_without_any_score_stops_the_run_with_the_reason() -> None:
    broken = replace(PLAYED, score=None, error=TraceError("EpisodeError", "the engine caught fire"))
    with pytest.raises(TrainingStopped, match=r"none of the batch's 2 rollouts has a score.*caught fire"):
        Watch().batch([broken, broken], 0.0, Guards())


def test_validity_that_collapses_goes_back_but_one_that_was_never_there_does_not() -> None:
    watch, guards = Watch(), Guards(max_invalid_share=0.5)
    assert watch.batch([refused(4)], 0.5, guards) is None  # it has not learnt yet
    assert watch.batch([PLAYED], 0.5, guards) is None
    assert watch.batch([refused(1), PLAYED, PLAYED], 0.5, guards) is None
    assert "100% of the calls" in (watch.batch([refused(4)], 0.5, guards) or "")


def test_a_sampler_that_disagrees_and_one_whose_ratio_is_no_number_stop_the_run() -> None:
    guards = Guards(max_log_ratio=0.01)
    Watch().agreement(0.009, guards)
    for ratio in (0.02, float("nan")):
        with pytest.raises(TrainingStopped, match="sampler and trainer differ"):
            Watch().agreement(ratio, guards)


def test_going_back_too_often_stops_the_run_with_the_last_reason() -> None:
    watch, guards = Watch(), Guards(max_roll_backs=2)
    watch.rolled_back("worse", guards)
    watch.rolled_back("worse", guards)
    with pytest.raises(TrainingStopped, match=r"2 times in a row.*last: worse still"):
        watch.rolled_back("worse still", guards)


def test_the_invalid_share_counts_calls_that_were_refused() -> None:
    assert invalid_share([refused(1), PLAYED, PLAYED, PLAYED]) == 0.25
    assert invalid_share([]) == 1.0
