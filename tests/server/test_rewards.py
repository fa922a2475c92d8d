"""Rewards: by-name inputs, null where input is missing, and nothing that is not a number in its range."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym import Transcript, reward
from mcpgym.errors import ConfigurationError, RewardError
from mcpgym.messages import assistant, user
from mcpgym.rewards import Score, find_rewards, score


def rubric(*functions: Any, **named: Any) -> tuple[Any, Any]:
    cls = type("Rubric", (), {f.__name__: f for f in functions} | named)
    return cls(), find_rewards(cls)


def scored(*functions: Any, state: Any = None, transcript: Any = None, task: Any = None, calls: Any = ()) -> Score:
    environment, rewards = rubric(*functions)
    return asyncio.run(score(rewards, environment, state, transcript=transcript, task=task, calls=calls))


def giving(value: Any, **options: float) -> Any:
    @reward(**options)
    def given(self):
        return value

    return given


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1.0001, -0.1, 2, 10**400])
def test_case_25_values_that_are_not_finite_or_out_of_range_are_refused(value):
    with pytest.raises(RewardError, match=r"reward 'given' gave .* outside its range \[0.0, 1.0\]"):
        scored(giving(value))


@pytest.mark.parametrize("value", ["1", [1], {"a": 1}, 1j, Decimal(1), object()])
def test_values_that_are_no_number_are_refused(value):
    with pytest.raises(RewardError, match="not a number"):
        scored(giving(value))


@pytest.mark.parametrize("value", [0, 1, 0.5, Fraction(1, 2), -0.0, True, False])
def test_numbers_of_every_kind_become_floats(value):
    made = scored(giving(value))
    assert made.total == float(value)
    assert isinstance(made.components["given"], float)


@given(st.floats(-10, 10), st.floats(-10, 10), st.floats(-20, 20))
def test_a_value_is_taken_exactly_when_it_lies_in_its_range(one, other, value):
    low, high = sorted((one, other))
    made = giving(value, low=low, high=high)
    if low <= value <= high:
        assert scored(made).total == value
    else:
        with pytest.raises(RewardError):
            scored(made)


def test_the_total_is_the_weighted_sum_without_rounding_on_the_way():
    made = scored(*[_named(f"r{i}", giving(0.1)) for i in range(10)])
    assert made.total == 1.0


def _named(name: str, function: Any) -> Any:
    function.__name__ = name
    return function


@pytest.mark.parametrize("weight", [1e308, 1e101])
def test_a_total_that_nobody_could_average_is_refused(weight):
    functions = [_named(f"r{i}", giving(1.0, weight=weight)) for i in range(3)]
    with pytest.raises(RewardError, match="add up to more than"):
        scored(*functions)


def test_a_component_without_its_input_is_null_and_so_is_the_total():
    @reward
    def state_only(self, board):
        return 1.0

    @reward(weight=0.2)
    def style(self, transcript):
        return 1.0

    made = scored(state_only, style)
    assert made.components == {"state_only": 1.0, "style": None}
    assert made.total is None
    assert scored(state_only, style, transcript=Transcript([])).total == pytest.approx(1.2)


def test_a_null_metric_of_weight_zero_leaves_the_total_alone():
    @reward(weight=0)
    def style(self, transcript):
        return 1.0

    made = scored(giving(0.25), style)
    assert made.total == 0.25
    assert made.components["style"] is None


def test_a_reward_may_say_that_it_cannot_tell():
    assert scored(giving(None)) == Score(None, {"given": None})


def test_inputs_come_by_name_and_any_other_name_is_the_state():
    seen = {}

    @reward
    def all_of_it(self, calls, whatever, task, transcript):
        seen.update(calls=calls, state=whatever, task=task, transcript=transcript)
        return 0.0

    transcript = Transcript([user("hi")])
    scored(all_of_it, state="S", transcript=transcript, task="T", calls=("C",))
    assert seen == {"calls": ("C",), "state": "S", "task": "T", "transcript": transcript}


def test_a_reward_may_be_asynchronous_and_need_nothing():
    @reward
    async def slow(self):
        await asyncio.sleep(0)
        return 1

    assert scored(slow).total == 1.0


@pytest.mark.parametrize("error", [ValueError("bad"), KeyError("x"), RecursionError(), TimeoutError()])
def test_case_29_a_reward_that_fails_is_an_error_not_a_zero(error):
    @reward
    def failing(self):
        raise error

    with pytest.raises(RewardError, match=f"reward 'failing' failed: {type(error).__name__}"):
        scored(failing)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"wieght": 1.0}, "no option 'wieght'; there is: weight, low, high"),
        ({"weight": float("nan")}, "weight is nan"),
        ({"high": float("inf")}, "high is inf"),
        ({"low": "0"}, "low is '0'"),
        ({"weight": True}, "weight is True"),
        ({"low": 2.0}, "low is 2 and high 1; exchange them"),
    ],
)
def test_options_that_mean_nothing_are_refused_at_definition(options, match):
    with pytest.raises(ConfigurationError, match=match):
        rubric(giving(0.0, **options))


def test_parameters_that_cannot_be_given_by_name_are_refused_at_definition():
    @reward
    def stars(self, *states):
        return 0.0

    @reward
    def doubles(self, **states):
        return 0.0

    @reward
    def slashed(self, state, /):
        return 0.0

    @reward
    @staticmethod
    def static(state):
        return 0.0

    for function in (stars, doubles, slashed, static):
        with pytest.raises(ConfigurationError, match=r"\*args|staticmethod"):
            rubric(made=function)


def test_a_subclass_inherits_replaces_and_drops_rewards():
    class One:
        first = giving(0.0)
        second = giving(0.0, weight=2)

    class Two(One):
        first = None
        second = giving(1.0, weight=3)

    assert {name: made.weight for name, made in find_rewards(One).items()} == {"first": 1.0, "second": 2.0}
    assert {name: made.weight for name, made in find_rewards(Two).items()} == {"second": 3.0}


def test_transcripts_tell_turns_and_answer():
    transcript = Transcript([user("q"), assistant("a"), user("sure?"), assistant("b")])
    assert [message["content"] for message in transcript.assistant_turns] == ["a", "b"]
    assert transcript.answer == "b"
    assert Transcript([user("q")]).answer == ""
    assert len(transcript) == 4
    assert next(iter(transcript)) == transcript[0] == user("q")
    assert transcript[-1]["content"] == "b"
