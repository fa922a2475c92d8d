"""Intervals: against published values, and against what a 95 % interval must do in a simulation."""

from __future__ import annotations

import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym.errors import ConfigurationError
from mcpgym_clients.statistics import (
    bootstrap,
    compare_paired,
    compare_unpaired,
    effective_size,
    holm,
    mean,
    pass_at_k,
    pass_hat_k,
    pass_rates,
    share,
    t_beyond,
    t_quantile,
    wilson,
)
from mcpgym_clients.statistics.differences import detectable


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


@pytest.mark.parametrize(
    ("attempts", "successes", "k", "any_of_k", "all_of_k"),
    [(5, 2, 1, 0.4, 0.4), (5, 2, 2, 0.7, 0.1), (5, 2, 4, 1.0, 0.0), (4, 4, 4, 1.0, 1.0), (3, 0, 2, 0.0, 0.0)],
)
def test_pass_rates_of_one_task(attempts: int, successes: int, k: int, any_of_k: float, all_of_k: float) -> None:
    assert pass_at_k(attempts, successes, k) == pytest.approx(any_of_k)
    assert pass_hat_k(attempts, successes, k) == pytest.approx(all_of_k)


@pytest.mark.parametrize(("attempts", "successes", "k"), [(3, 4, 1), (3, 1, 4), (3, 1, 0), (3, -1, 1)])
def test_attempts_that_were_not_made_are_refused(attempts: int, successes: int, k: int) -> None:
    for rate in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="attempts"):
            rate(attempts, successes, k)


def test_pass_at_1_is_the_share_of_successes_with_its_interval() -> None:
    random = Random(2)
    tasks = [task for task in range(12) for _ in range(6)]
    succeeded = [random.random() < 0.3 + task / 30 for task in tasks]
    rates = pass_rates(succeeded, tasks)
    assert [rate.k for rate in rates] == [1, 2, 4, 6]
    own = share(succeeded, tasks)
    assert rates[0].any_of_k.mean == pytest.approx(own.mean)
    assert rates[0].any_of_k.interval == pytest.approx(own.interval)
    assert [rate.any_of_k.mean for rate in rates] == sorted(rate.any_of_k.mean for rate in rates)
    assert [rate.all_of_k.mean for rate in rates] == sorted((rate.all_of_k.mean for rate in rates), reverse=True)


def test_tasks_that_were_tried_less_are_left_out_of_a_larger_k() -> None:
    (one, two, three) = pass_rates([True, False, True, True, True, True], ["a", "a", "a", "b", "b", "c"])
    assert [(rate.k, rate.tasks) for rate in (one, two, three)] == [(1, 3), (2, 2), (3, 1)]
    assert one.any_of_k.mean == pytest.approx((2 / 3 + 1 + 1) / 3)
    assert three.any_of_k.interval is None
    assert pass_rates([], []) == []


def test_the_effective_size_of_equal_repeats_is_the_number_of_tasks() -> None:
    values, tasks = [0.0, 1.0, 0.5, 0.25], ["a", "b", "c", "d"]
    assert effective_size(values, tasks) == 4
    assert effective_size(values * 9, tasks * 9) == pytest.approx(3.2, abs=0.5)
    assert effective_size([1.0] * 8, tasks * 2) == 4
    assert effective_size(values, ["a"] * 4) == 4
    assert effective_size([0.0, 1.0] * 4, [*"aabbccdd"]) == 8  # clusters that cancel tell no less


def test_fishers_exact_p_value_by_hand() -> None:
    """Of the eight ways to sign 1, 2 and 4, only the two with all signs alike reach 7; four reach 5."""
    zeros, tasks = [0.0] * 3, ["a", "b", "c"]
    assert compare_paired(zeros, [1.0, 2.0, 4.0], tasks).p == pytest.approx(2 / 8)
    assert compare_paired(zeros, [-1.0, 2.0, 4.0], tasks).p == pytest.approx(4 / 8)


def test_the_paired_t_interval_is_the_textbooks() -> None:
    first, second = [1.0, 2.0, 3.0, 4.0], [1.5, 2.0, 4.5, 4.0]
    found = compare_paired(first, second, "abcd")
    apart = [0.5, 0.0, 1.5, 0.0]
    deviation = (sum((value - 0.5) ** 2 for value in apart) / 3) ** 0.5
    half = 3.18244631 * deviation / 2
    assert found.interval == pytest.approx([0.5 - half, 0.5 + half])
    assert found.detectable is None, "the exact test finds nothing on four tasks, however large"
    assert detectable(deviation / 2, 3) == pytest.approx((3.18244631 + 0.97847231) * deviation / 2)
    assert compare_paired([0.0] * 6, [0.5, 0.0, 1.5, 0.0, 0.2, 0.1], "abcdef").detectable is not None


def test_p_values_of_more_than_a_few_tasks_are_students() -> None:
    random = Random(4)
    apart = [random.gauss(0.1, 1) for _ in range(40)]
    found = compare_paired([0.0] * 40, apart, range(40))
    centre = sum(apart) / 40
    error = (sum((value - centre) ** 2 for value in apart) / 39 / 40) ** 0.5
    assert found.p == pytest.approx(t_beyond(centre / error, 39))
    assert t_beyond(2.02269092, 39) == pytest.approx(0.05)


def test_welchs_example() -> None:
    """Two samples of unequal spread, against the formula worked out apart from ours."""
    one, other = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9], [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8]
    found = compare_unpaired(one, range(6), other, range(10, 19))
    scipy = pytest.importorskip("scipy.stats")
    theirs = scipy.ttest_ind(other, one, equal_var=False)
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.interval == pytest.approx([*theirs.confidence_interval(0.95)])


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_the_bootstrap_is_seeded_and_knows_equal_values() -> None:
    values = [random.expovariate(1) for random in [Random(3)] for _ in range(30)]
    assert bootstrap(values, range(30)) == bootstrap(values, range(30))
    assert bootstrap(values, range(30)) != bootstrap(values, range(30), seed=1)
    assert bootstrap([0.1] * 5, range(5)).interval == pytest.approx([0.1, 0.1])
    assert bootstrap([0.1], ["a"]).interval is None
    assert bootstrap(values, ["only"] * 30) == bootstrap(values, range(30))
    scipy = pytest.importorskip("scipy.stats")
    theirs = scipy.bootstrap((values,), lambda x, axis: x.mean(axis=axis), n_resamples=20_000, random_state=1)
    low, high = theirs.confidence_interval
    assert bootstrap(values, range(30), resamples=20_000).interval == pytest.approx([low, high], abs=0.03)


def test_without_numpy_the_bootstrap_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ConfigurationError, match="pip install numpy"):
        bootstrap([0.0, 1.0], range(2))
