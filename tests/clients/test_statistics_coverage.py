"""What each interval and each test promises, held against simulations and, where it can be, worked out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from mcpgym_clients.statistics import (
    bootstrap,
    compare_paired,
    compare_unpaired,
    effective_size,
    mean,
    pass_at_k,
    pass_hat_k,
    pass_rates,
    proportion,
    wilson,
)
from mcpgym_clients.statistics.differences import detectable


def covered(interval: Sequence[float] | None, truth: float) -> bool:
    assert interval is not None
    return interval[0] - 1e-12 <= truth <= interval[1] + 1e-12


def share_of(runs: int, happened: Callable[[], bool]) -> float:
    return sum(happened() for _ in range(runs)) / runs


@pytest.mark.parametrize("n", [8, 30, 100])
def test_wilson_covers_95_of_100_on_average_worked_out_for_every_count(n: int) -> None:
    """No simulation: the chance of each number of successes is known."""
    intervals = [wilson(count, n) for count in range(n + 1)]
    chances = [number / 200 for number in range(10, 191)]
    cover = [
        sum(
            math.comb(n, count) * p**count * (1 - p) ** (n - count)
            for count in range(n + 1)
            if covered(intervals[count], p)
        )
        for p in chances
    ]
    assert 0.945 < sum(cover) / len(cover) < 0.965
    assert min(cover) > 0.82  # near 0 and 1 no interval does better with so few


@pytest.mark.parametrize("spread", [0.5, 5.0], ids=["tasks unlike", "tasks alike"])
def test_pass_rates_cover_their_truth(spread: float) -> None:
    """Tasks have success chances of a Beta distribution, whose moments are the truth."""
    random, tasks, attempts = Random(4), 40, 4
    a, b = 0.6 * spread, 0.4 * spread
    all_of = {1: a / (a + b), 2: a * (a + 1) / ((a + b) * (a + b + 1))}
    all_of[4] = all_of[2] * (a + 2) * (a + 3) / ((a + b + 2) * (a + b + 3))
    lost = {1: b / (a + b), 2: b * (b + 1) / ((a + b) * (a + b + 1))}
    lost[4] = lost[2] * (b + 2) * (b + 3) / ((a + b + 2) * (a + b + 3))
    runs, hits = 700, dict.fromkeys([("any", k) for k in lost] + [("all", k) for k in lost], 0)
    for _ in range(runs):
        chances = [random.betavariate(a, b) for _ in range(tasks)]
        succeeded = [random.random() < chance for chance in chances for _ in range(attempts)]
        for rate in pass_rates(succeeded, [task for task in range(tasks) for _ in range(attempts)]):
            hits["any", rate.k] += covered(rate.any_of_k.interval, 1 - lost[rate.k])
            hits["all", rate.k] += covered(rate.all_of_k.interval, all_of[rate.k])
    assert all(0.92 < hit / runs < 0.99 for hit in hits.values()), hits


def test_pass_estimates_are_unbiased() -> None:
    """Over all ways in which attempts can come out, their mean is the truth, exactly."""
    n, p = 6, 0.3
    for k in range(1, n + 1):
        weights = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
        assert sum(w * pass_at_k(n, c, k) for c, w in enumerate(weights)) == pytest.approx(1 - (1 - p) ** k)
        assert sum(w * pass_hat_k(n, c, k) for c, w in enumerate(weights)) == pytest.approx(p**k)


def test_the_bootstrap_covers_skewed_means_and_clusters() -> None:
    random, runs = Random(6), 250
    truth = math.exp(0.32)  # the mean of a lognormal of sigma 0.8

    def skewed() -> bool:
        values = [random.lognormvariate(0, 0.8) for _ in range(60)]
        return covered(bootstrap(values, range(60), resamples=1_000, seed=random.getrandbits(30)).interval, truth)

    assert 0.89 < share_of(runs, skewed) < 0.985
    clusters = [task for task in range(30) for _ in range(5)]

    def clustered(groups: Sequence[int]) -> Callable[[], bool]:
        def once() -> bool:
            levels = [random.gauss(0, 1) for _ in range(30)]
            values = [levels[task] + random.gauss(0, 0.5) for task in clusters]
            return covered(bootstrap(values, groups, resamples=1_000, seed=random.getrandbits(30)).interval, 0)

        return once

    assert 0.89 < share_of(runs, clustered(clusters)) < 0.985
    assert share_of(runs, clustered(range(150))) < 0.8  # treating repeats as episodes of their own would be a lie


def paired(random: Random, tasks: int, repeats: int, effect: float) -> Any:
    """Two runs over the same tasks; the policies differ by ``effect`` on average, and by task."""
    clusters = [task for task in range(tasks) for _ in range(repeats)]
    level = [random.gauss(0, 5) for _ in range(tasks)]
    apart = [random.gauss(effect, 0.6) for _ in range(tasks)]
    first = [level[task] + random.gauss(0, 0.5) for task in clusters]
    second = [level[task] + apart[task] + random.gauss(0, 0.5) for task in clusters]
    return compare_paired(first, second, clusters)


@pytest.mark.parametrize(("tasks", "repeats"), [(40, 1), (25, 4), (12, 3)])
def test_paired_differences_are_covered_and_seldom_found_where_there_are_none(tasks: int, repeats: int) -> None:
    random, runs = Random(9), 800
    found = [paired(random, tasks, repeats, 0.0) for _ in range(runs)]
    assert 0.93 < sum(covered(item.interval, 0.0) for item in found) / runs < 0.97
    assert 0.03 < sum(item.distinguishable for item in found) / runs < 0.065


def test_a_difference_of_the_detectable_size_is_found_in_four_of_five_runs() -> None:
    random, runs, tasks = Random(12), 800, 40
    error = math.sqrt((0.6**2 + 2 * 0.5**2) / tasks)
    size = detectable(error, tasks - 1)
    assert size is not None
    found = [paired(random, tasks, 1, size) for _ in range(runs)]
    assert 0.76 < sum(item.distinguishable for item in found) / runs < 0.84
    stated = sorted(item.detectable for item in found)
    assert stated[runs // 2] == pytest.approx(size, rel=0.05)
    needed = sorted(item.tasks_needed for item in found if item.tasks_needed)
    assert 0.7 * tasks < needed[len(needed) // 2] < 1.4 * tasks


@pytest.mark.parametrize("rare", [0.02, 0.05, 0.1, 0.3])
def test_rare_wins_more_or_less_are_not_taken_for_a_difference(rare: float) -> None:
    """Student's interval alone finds one too often where few of 100 games end differently."""
    random, runs = Random(15), 1_000

    def found() -> bool:
        first, second = [], []
        for _ in range(100):
            first.append(0.0)
            second.append(random.choice((-1.0, 1.0)) if random.random() < rare else 0.0)
        return compare_paired(first, second, range(100)).distinguishable

    assert share_of(runs, found) < 0.065


def test_means_without_pairs_are_covered() -> None:
    random, runs = Random(18), 600

    def once() -> bool:
        one, other = ([task for task in range(tasks) for _ in range(3)] for tasks in (10, 30))
        levels = [[random.gauss(0, spread) for _ in range(30)] for spread in (2.0, 0.5)]
        first = [levels[0][task] + random.gauss(0, 1) for task in one]
        second = [1.0 + levels[1][task] + random.gauss(0, 1) for task in other]
        return covered(compare_unpaired(first, one, second, other).interval, 1.0)

    assert 0.93 < share_of(runs, once) < 0.97


def test_the_effective_size_is_that_of_as_exact_a_mean() -> None:
    """The variance of the mean over many runs is s² over it."""
    random, tasks, repeats, runs = Random(21), 50, 6, 600
    clusters = [task for task in range(tasks) for _ in range(repeats)]
    means, sizes = [], []
    for _ in range(runs):
        level = [random.gauss(0, 1) for _ in range(tasks)]
        values = [level[task] + random.gauss(0, 1) for task in clusters]
        means.append(math.fsum(values) / len(values))
        sizes.append(effective_size(values, clusters))
    variance = math.fsum(value * value for value in means) / runs
    assert math.fsum(sizes) / runs == pytest.approx(2 / variance, rel=0.15)
    assert 60 < math.fsum(sizes) / runs < 120  # of 300


def test_shares_between_0_and_1_are_covered() -> None:
    """Rewards between 0 and 1 that are neither: Wilson's interval at the effective size."""
    random = Random(24)
    truth = 0.8

    def once() -> bool:
        return covered(
            proportion([random.betavariate(4, 1) for _ in range(25)], range(25), episodes=1_000).interval, truth
        )

    assert 0.93 < share_of(800, once) < 0.98
    assert proportion([0.5], ["a"]).interval is None
    assert mean([0.2, 0.4, 0.6], range(3), size=1.5).interval is None
