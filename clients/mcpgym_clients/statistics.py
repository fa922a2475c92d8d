"""Means and shares with their intervals. All intervals are two-sided and 95 % unless a confidence is given.

Episodes of one task are not independent of each other, so where tasks are repeated every interval is clustered by
task; with one episode per task it is the textbook one.

References:
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. JASA 22.
    Student (1908). The probable error of a mean. Biometrika 6.
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73:
        the cluster-robust variance.
    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of positive
        counts estimated from survey data. Survey Methodology 24: the effective sample size.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean or share over ``n`` episodes. ``low`` and ``high`` are None where one episode allows no interval."""

    mean: float
    low: float | None
    high: float | None
    n: int

    @property
    def interval(self) -> list[float] | None:
        """``[low, high]``, as files have it."""
        return None if self.low is None or self.high is None else [self.low, self.high]


def wilson(successes: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson's score interval of a share; ``n`` may be an effective sample size.

    Args:
        successes: how often it happened, 0 to ``n``.
        n: out of how many, above 0.
        confidence: between 0 and 1.

    Raises:
        ValueError: the numbers are those of no share.
    """
    if not 0 <= successes <= n or n <= 0:
        raise ValueError(f"{successes} of {n} is no share")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return low, high


def mean(values: Sequence[float], clusters: Sequence[Hashable], confidence: float = CONFIDENCE) -> Estimate:
    """The mean with its t interval, clustered where a cluster (a task) has more than one value.

    Where all values lie in one cluster, the interval speaks of that task alone. ``values`` must not be empty.
    """
    n = len(values)
    centre = math.fsum(values) / n
    if n == 1:
        return Estimate(centre, None, None, 1)
    variance, degrees = _variance(values, centre, clusters)
    half = t_quantile((1 + confidence) / 2, degrees) * math.sqrt(variance)
    return Estimate(centre, centre - half, centre + half, n)


def share(happened: Sequence[bool], clusters: Sequence[Hashable], confidence: float = CONFIDENCE) -> Estimate:
    """How often something happened, with Wilson's interval at the effective sample size.

    With one value a cluster the effective size is the number of values. Otherwise it is what the clustered variance
    leaves of it (Korn and Graubard), never more; where all values agree, nothing can be estimated of how clusters
    differ, and it is the number of clusters.
    """
    n, successes = len(happened), sum(happened)
    groups = len(set(clusters))
    effective = float(n)
    if 1 < groups < n:
        if successes in (0, n):
            effective = float(groups)
        else:
            p = successes / n
            variance, degrees = _variance([float(value) for value in happened], p, clusters)
            if variance > 0:
                upper = (1 + confidence) / 2
                correction = (t_quantile(upper, n - 1) / t_quantile(upper, degrees)) ** 2
                effective = min(float(n), p * (1 - p) / variance * correction)
    low, high = wilson(successes / n * effective, effective, confidence)
    return Estimate(successes / n, low, high, n)


def _variance(values: Sequence[float], centre: float, clusters: Sequence[Hashable]) -> tuple[float, int]:
    """The variance of the mean and its degrees of freedom (Liang and Zeger; with singletons, s²/n and n - 1)."""
    n = len(values)
    residuals: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        residuals.setdefault(cluster, []).append(value - centre)
    if len(residuals) == 1:
        residuals = {index: [value - centre] for index, value in enumerate(values)}
    groups = len(residuals)
    squares = math.fsum(math.fsum(items) ** 2 for items in residuals.values())
    return groups / (groups - 1) * squares / (n * n), groups - 1


@cache
def t_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t distribution, for a probability of at least one half; found by bisection.

    Raises:
        ValueError: the probability is none of these, or there is no degree of freedom.
    """
    if not 0.5 <= probability < 1 or degrees < 1:
        raise ValueError(f"no quantile {probability} with {degrees} degrees of freedom")
    low, high = 0.0, 1.0
    while _t_cdf(high, degrees) < probability:
        low, high = high, high * 2
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2
        if _t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
        if middle in (low, high) and math.nextafter(low, high) >= high:
            break
    return (low + high) / 2


def _t_cdf(t: float, degrees: int) -> float:
    return 1 - _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (NIST DLMF 8.17.22) in Lentz's method."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * fraction / a
