"""Intervals: against published values, and against what a 95 % interval must do in a simulation."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym_clients.statistics import mean, share, t_quantile, wilson


@pytest.mark.parametrize(
    ("probability", "degrees", "expected"),
    [  # any printed table of Student's t
        (0.975, 1, 12.7062047),
        (0.975, 2, 4.30265273),
        (0.975, 10, 2.22813885),
        (0.975, 30, 2.04227246),
        (0.995, 5, 4.03214298),
        (0.95, 120, 1.65765090),
        (0.975, 100_000, 1.95998771),
        (0.5, 7, 0.0),
    ],
)
def test_t_quantiles_agree_with_the_tables(probability: float, degrees: int, expected: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [  # 97 of 100 only means 91.5 to 99.0 %; the others are Newcombe's (1998) examples of the score method
        (97, 100, 0.91548, 0.98975),
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_agrees_with_published_intervals(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=1e-4)


def test_a_share_of_more_than_all_is_refused() -> None:
    for successes, n in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match="no share"):
            wilson(successes, n)


def test_the_mean_of_one_episode_per_task_is_the_textbook_t_interval() -> None:
    values = [1.0, 0.5, 0.0, 1.0, 0.5, 1.0, 0.0, 1.0]
    estimate = mean(values, range(len(values)))
    centre = sum(values) / 8
    deviation = (sum((value - centre) ** 2 for value in values) / 7) ** 0.5
    half = 2.36462425 * deviation / 8**0.5
    assert estimate.mean == pytest.approx(centre)
    assert estimate.interval == pytest.approx([centre - half, centre + half])


def test_one_episode_has_a_mean_and_no_interval() -> None:
    estimate = mean([0.5], ["a"])
    assert (estimate.mean, estimate.interval, estimate.n) == (0.5, None, 1)


def test_ten_equal_repeats_of_each_task_tell_no_more_than_one() -> None:
    """Repeating deterministic games must not narrow the interval: the clusters are what was sampled."""
    once = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    tasks = list(range(6))
    single, repeated = mean(once, tasks), mean(once * 10, tasks * 10)
    assert repeated.interval == pytest.approx(single.interval)
    assert repeated.n == 60
    won = [value == 1.0 for value in once]
    narrow, wide = share(won * 10, range(60)), share(won * 10, tasks * 10)
    assert narrow.low is not None
    assert wide.low is not None
    assert wide.low < narrow.low - 0.1


def test_all_games_won_of_few_tasks_is_not_certainty() -> None:
    estimate = share([True] * 100, [index % 5 for index in range(100)])
    assert estimate.low == pytest.approx(wilson(5, 5)[0])
    assert estimate.high == 1.0


def test_repeats_of_a_single_task_speak_of_that_task() -> None:
    assert share([True, False] * 50, ["only"] * 100).interval == pytest.approx(list(wilson(50, 100)))
    assert mean([1.0, 0.0] * 50, ["only"] * 100).interval == pytest.approx(mean([1.0, 0.0] * 50, range(100)).interval)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=1, max_size=60))
def test_a_share_lies_in_its_interval_and_the_interval_between_0_and_1(rows: list[tuple[bool, int]]) -> None:
    happened = [row[0] for row in rows]
    clustered = share(happened, [row[1] for row in rows])
    assert clustered.low is not None
    assert clustered.high is not None
    assert 0 <= clustered.low <= clustered.mean + 1e-12
    assert clustered.mean - 1e-12 <= clustered.high <= 1
    plain = share(happened, range(len(rows)))
    assert plain.low is not None
    assert plain.high is not None
    assert clustered.high - clustered.low >= plain.high - plain.low - 1e-12  # clustering never claims more


def _covered(interval: list[float] | None, truth: float) -> bool:
    assert interval is not None
    return interval[0] <= truth <= interval[1]


def test_intervals_cover_the_truth_about_95_times_in_100() -> None:
    random = Random(20260728)
    runs = 1_500
    shares = sum(
        _covered(share([random.random() < 0.9 for _ in range(60)], range(60)).interval, 0.9) for _ in range(runs)
    )
    means = sum(_covered(mean([random.gauss(0.3, 2) for _ in range(12)], range(12)).interval, 0.3) for _ in range(runs))
    assert 0.93 < shares / runs < 0.975
    assert 0.93 < means / runs < 0.97


def test_clustered_intervals_cover_the_truth_where_plain_ones_do_not() -> None:
    """Tasks differ in difficulty and are repeated eight times: treating episodes as independent would be a lie."""
    random = Random(20251125)
    runs, tasks, repeats = 600, 40, 8
    clustered = plain = means = 0
    clusters = [task for task in range(tasks) for _ in range(repeats)]
    for _ in range(runs):
        difficulty = [random.choice((0.15, 0.95)) for _ in range(tasks)]
        won = [random.random() < difficulty[task] for task in clusters]
        clustered += _covered(share(won, clusters).interval, 0.55)
        plain += _covered(share(won, range(len(won))).interval, 0.55)
        means += _covered(mean([float(item) for item in won], clusters).interval, 0.55)
    assert 0.92 < clustered / runs < 0.98
    assert 0.92 < means / runs < 0.98
    assert plain / runs < 0.75
