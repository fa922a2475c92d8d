"""Two runs against each other: what the difference is, whether there is one, and how small a one could be seen.

References:
    Student (1908). The probable error of a mean. Biometrika 6: the paired comparison.
    Welch, B. L. (1947). The generalization of Student's problem when several different population variances are
        involved. Biometrika 34; Satterthwaite, F. E. (1946), Biometrics Bulletin 2, for the degrees of freedom.
    Fisher, R. A. (1935). The Design of Experiments. Oliver and Boyd: the exact test that turns signs round.
    Bloom, H. S. (1995). Minimum detectable effects. Evaluation Review 19.
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from mcpgym_clients.statistics.estimates import CONFIDENCE, cluster_variance
from mcpgym_clients.statistics.student import t_beyond, t_quantile

POWER = 0.8
FEW = 16
"""With at most so many tasks that differ, the p-value is Fisher's exact one: all 2^16 signs are tried."""


def fewest(confidence: float) -> int:
    """How many tasks must differ at the least before Fisher's test can find anything: 6 where p is to be below 5 %."""
    return math.floor(1 - math.log2(1 - confidence)) + 1


@dataclass(frozen=True, slots=True)
class Difference:
    """How far the second run is above the first, on average.

    ``low`` and ``high`` are None where one task alone allows no interval, and so is ``p``, the chance of a difference
    at least as large where there is none. ``detectable`` is the smallest true difference that a comparison of this size
    finds in about ``POWER`` of all cases (less where few tasks differ); None where nothing is known of what would vary,
    and where there are too few tasks to find any. ``differing`` counts the tasks on which the runs differ at all.
    """

    first: float
    second: float
    low: float | None
    high: float | None
    p: float | None
    detectable: float | None
    n: int
    tasks: int
    differing: int
    paired: bool = True
    confidence: float = CONFIDENCE

    @property
    def mean(self) -> float:
        """The second run's mean less the first's."""
        return self.second - self.first

    @property
    def interval(self) -> list[float] | None:
        """``[low, high]``, as files have it."""
        return None if self.low is None or self.high is None else [self.low, self.high]

    @property
    def distinguishable(self) -> bool:
        """Whether the interval leaves 0 out and the test agrees."""
        return self.judged(self.p)

    def judged(self, p: float | None) -> bool:
        """Whether the runs can be told apart by the p-value ``p``: its own, or one that is corrected for many."""
        if self.low is None or self.high is None or p is None:
            return False
        return p < 1 - self.confidence and not self.low <= 0 <= self.high

    @property
    def tasks_needed(self) -> int | None:
        """About how many tasks would find a true difference as large as this one; None where there is none to find."""
        if not self.detectable or not self.mean:
            return None
        return math.ceil(self.tasks * (self.detectable / self.mean) ** 2)

    def within(self, low: float | None, high: float | None) -> Difference:
        """The same difference with another interval (the bootstrap's)."""
        return replace(self, low=low, high=high)


def compare_paired(
    first: Sequence[float], second: Sequence[float], tasks: Sequence[Hashable], confidence: float = CONFIDENCE
) -> Difference:
    """The mean difference of pairs, clustered by task, with Student's t interval.

    Where at most ``FEW`` tasks differ the t distribution promises too much, and the p-value is that of Fisher's exact
    test: what share of all ways to turn the signs of the tasks' differences round gives a sum at least as far from 0.

    Args:
        first: a value of each pair.
        second: the other.
        tasks: whose pair it is. Pairs of a single task are compared with each other only.
        confidence: between 0 and 1.
    """
    n = len(first)
    apart = [b - a for a, b in zip(first, second, strict=True)]
    before, after = math.fsum(first) / n, math.fsum(second) / n
    groups = len(set(tasks))
    sums = _sums(apart, tasks if groups > 1 else range(n))
    differing = sum(value != 0 for value in sums)
    counts = {"n": n, "tasks": groups, "differing": differing, "confidence": confidence}
    if n == 1:
        return Difference(before, after, None, None, None, None, **counts)  # type: ignore[arg-type]
    centre = math.fsum(apart) / n
    variance, degrees = cluster_variance(apart, centre, tasks)
    error = math.sqrt(variance)
    half = t_quantile((1 + confidence) / 2, degrees) * error
    p = _exact(sums) if differing <= FEW else t_beyond(centre / error if error else math.inf, degrees)
    found = detectable(error, degrees, confidence) if len(sums) >= fewest(confidence) else None
    return Difference(before, after, centre - half, centre + half, p, found, **counts)  # type: ignore[arg-type]


def compare_unpaired(
    first: Sequence[float],
    first_tasks: Sequence[Hashable],
    second: Sequence[float],
    second_tasks: Sequence[Hashable],
    confidence: float = CONFIDENCE,
) -> Difference:
    """The difference of two means that have no task in common: Welch's, clustered by task within each run."""
    n, other = len(first), len(second)
    before, after = math.fsum(first) / n, math.fsum(second) / other
    tasks = len(set(first_tasks)) + len(set(second_tasks))
    counts = {"n": n + other, "tasks": tasks, "differing": tasks, "confidence": confidence, "paired": False}
    if min(n, other) == 1:
        return Difference(before, after, None, None, None, None, **counts)  # type: ignore[arg-type]
    (one, fewer), (two, more) = (
        cluster_variance(first, before, first_tasks),
        cluster_variance(second, after, second_tasks),
    )
    error = math.sqrt(one + two)
    degrees = (one + two) ** 2 / (one**2 / fewer + two**2 / more) if error else float(min(fewer, more))
    half = t_quantile((1 + confidence) / 2, degrees) * error
    apart = after - before
    p = t_beyond(apart / error, degrees) if error else float(apart == 0)
    found = detectable(error, degrees, confidence)
    return Difference(before, after, apart - half, apart + half, p, found, **counts)  # type: ignore[arg-type]


def detectable(error: float, degrees: float, confidence: float = CONFIDENCE, power: float = POWER) -> float | None:
    """The smallest true difference that is found with this ``power``, given the standard error of the difference.

    None where the error is 0: nothing varied, so nothing is known of what would.
    """
    if error == 0:
        return None
    return (t_quantile((1 + confidence) / 2, degrees) + t_quantile(power, degrees)) * error


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of several comparisons, corrected so that one false find among all of them stays as rare."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected


def _sums(values: Sequence[float], clusters: Sequence[Hashable]) -> list[float]:
    """What the values of each cluster come to, exactly 0 where they cancel."""
    found: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        found.setdefault(cluster, []).append(value)
    return [math.fsum(items) for items in found.values()]


def _exact(sums: Sequence[float]) -> float:
    """The p-value of the exact test of signs turned round; clusters of 0 change nothing."""
    differing = [value for value in sums if value != 0]
    if not differing:
        return 1.0
    reached = [0.0]
    for value in differing[1:]:  # the first sign may stand still: the other half is its mirror
        reached = [total + step for total in reached for step in (value, -value)]
    here = abs(math.fsum(differing))
    slack = 1e-9 * math.fsum(map(abs, differing))
    return sum(abs(total + differing[0]) >= here - slack for total in reached) / len(reached)
