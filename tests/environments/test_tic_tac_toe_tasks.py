"""The tasks: the range of opponents, the seats, the seeds, and what configurations are refused."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym import ConfigurationError, load_environment
from mcpgym_environments.tic_tac_toe import TicTacToe


def made(**config: Any) -> TicTacToe:
    environment = load_environment("tic-tac-toe", config)
    assert isinstance(environment, TicTacToe)
    return environment


def probs(environment: TicTacToe, split: str, start: int, count: int) -> list[float]:
    return [task.info["random_move_prob"] for task in environment.tasks(split)[start : start + count]]


@given(
    groups=st.integers(1, 50),
    start=st.integers(0, 900),
    edges=st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
    split=st.sampled_from(["train", "test"]),
)
def test_any_num_groups_tasks_in_a_row_have_one_opponent_of_each_part_of_the_range(
    groups: int, start: int, edges: list[float], split: str
) -> None:
    low, high = edges
    environment = made(num_groups=groups, min_random_move_prob=low, max_random_move_prob=high)
    window = sorted(probs(environment, split, start, groups))
    width = (high - low) / groups
    for part, prob in enumerate(window):
        assert low + part * width - 1e-12 <= prob <= low + (part + 1) * width + 1e-12


def test_a_few_tasks_in_a_row_are_spread_over_the_range_too() -> None:
    environment = made(num_groups=32)
    for start in range(200):
        window = sorted(probs(environment, "train", start, 8))
        assert max(b - a for a, b in zip([0.0, *window], [*window, 1.0], strict=True)) < 0.35


def test_inside_its_part_of_the_range_the_opponent_is_drawn_evenly() -> None:
    inside = [prob * 16 % 1 for prob in probs(made(), "train", 0, 4000)]
    counts = [sum(int(x * 10) == tenth for x in inside) for tenth in range(10)]
    assert sum((count - 400) ** 2 / 400 for count in counts) < 9 + 4 * math.sqrt(18)


def test_equal_edges_give_exactly_that_opponent() -> None:
    for prob in (0.0, 0.3, 1.0):
        assert set(probs(made(min_random_move_prob=prob, max_random_move_prob=prob), "train", 0, 50)) == {prob}


def test_about_half_of_the_tasks_move_second_whatever_their_opponent() -> None:
    tasks = TicTacToe().tasks("train")
    second = [task.info["random_move_prob"] for task in tasks if not task.info["policy_first"]]
    assert abs(len(second) - len(tasks) / 2) < 4 * math.sqrt(len(tasks)) / 2
    assert abs(sum(second) / len(second) - 0.5) < 4 * math.sqrt(1 / 12 / len(second))


@pytest.mark.parametrize(("moves", "first"), [("first", {True}), ("second", {False}), ("either", {True, False})])
def test_the_seat_can_be_chosen(moves: str, first: set[bool]) -> None:
    environment = made(policy_moves=moves)
    tasks = environment.tasks("test")[:40]
    assert {task.info["policy_first"] for task in tasks} == first
    assert {environment.reset(task, 0).opening is None for task in tasks} == first


def test_the_splits_share_no_seed_by_construction_and_no_split_repeats_one() -> None:
    environment = made(train_tasks=20_000, test_tasks=5_000)
    train = [task.info["seed"] for task in environment.tasks("train")]
    test = [task.info["seed"] for task in environment.tasks("test")]
    assert {seed % 2 for seed in train} == {0}
    assert {seed % 2 for seed in test} == {1}
    assert len(set(train)) == len(train)
    assert len(set(test)) == len(test)


def test_case_27_a_task_is_the_same_however_it_is_asked_for() -> None:
    one, other = made(), made()
    tasks = one.tasks("train")
    shuffled = list(range(100))
    random.Random(0).shuffle(shuffled)
    for index in shuffled:
        assert tasks[index] == other.task(f"train-{index}") == other.task_at("train", index)
    assert len(tasks) == 10_000
    assert len(one.tasks("test")) == 1_000


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"min_random_move_prob": 0.8, "max_random_move_prob": 0.2}, r"min_random_move_prob=0\.8 must not be above"),
        ({"min_random_move_prob": -0.1}, "min_random_move_prob: .*greater than or equal to 0"),
        ({"max_random_move_prob": 1.01}, "max_random_move_prob: .*less than or equal to 1"),
        ({"max_random_move_prob": "nan"}, "max_random_move_prob: .*finite"),
        ({"num_groups": 0}, "num_groups: .*greater than or equal to 1"),
        ({"train_tasks": 0}, "train_tasks: .*greater than or equal to 1"),
        ({"test_tasks": -3}, "test_tasks: .*greater than or equal to 1"),
        ({"max_turns": 0}, "max_turns: .*greater than or equal to 1"),
        ({"num_groups": "many"}, "num_groups: .*valid integer"),
        ({"policy_moves": "third"}, "policy_moves: .*'first', 'second' or 'either'"),
        ({"min_random_prob": 0}, "did you mean 'min_random_move_prob'"),
    ],
)
def test_a_configuration_that_cannot_be_is_refused_by_name(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        made(**config)


def test_every_field_is_described() -> None:
    assert all(field.description for field in TicTacToe.config_class.model_fields.values())


def test_a_split_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'train'"):
        TicTacToe().tasks("trian")
