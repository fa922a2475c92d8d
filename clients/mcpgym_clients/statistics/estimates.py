"""Means and shares with their intervals, and how many independent episodes they are worth.

References:
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference. JASA 22.
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73:
        the cluster-robust variance.
    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number of positive
        counts estimated from survey data. Survey Methodology 24: the effective sample size of a share.
    Kish, L. (1965). Survey Sampling. Wiley: the design effect.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from mcpgym_clients.statistics.student import t_quantile

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


def mean(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = CONFIDENCE, *, size: float | None = None
) -> Estimate:
    """The mean with its t interval, clustered where a cluster (a task) has more than one value.

    Where all values lie in one cluster, the interval speaks of that task alone. ``values`` must not be empty. With
    ``size``, the interval is the one that so many independent values of the same spread would have.
    """
    n = len(values)
    centre = math.fsum(values) / n
    if n == 1 or (size is not None and size < 2):
        return Estimate(centre, None, None, n)
    if size is None:
        variance, degrees = cluster_variance(values, centre, clusters)
    else:
        variance, degrees = _spread(values, centre) / size, int(size) - 1
    half = t_quantile((1 + confidence) / 2, degrees) * math.sqrt(variance)
    return Estimate(centre, centre - half, centre + half, n)


def share(happened: Sequence[bool], clusters: Sequence[Hashable], confidence: float = CONFIDENCE) -> Estimate:
    """How often something happened, with Wilson's interval at the effective sample size.

    With one value a cluster the effective size is the number of values. Otherwise it is what the clustered variance
    leaves of it (Korn and Graubard), never more; where all values agree, nothing can be estimated of how clusters
    differ, and it is the number of clusters.
    """
    n = len(happened)
    if len(set(clusters)) in (1, n):
        low, high = wilson(sum(happened), n, confidence)
        return Estimate(sum(happened) / n, low, high, n)
    return proportion([float(value) for value in happened], clusters, confidence)


def proportion(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    confidence: float = CONFIDENCE,
    *,
    episodes: int | None = None,
) -> Estimate:
    """The mean of values between 0 and 1, with Wilson's interval at the effective sample size (Korn and Graubard).

    Args:
        values: between 0 and 1; not empty. One alone has no interval.
        clusters: which of them belong together.
        confidence: between 0 and 1.
        episodes: how many episodes the values were made of: they cannot be worth more. By default their number.
    """
    n = len(values) if episodes is None else episodes
    groups = len(set(clusters))
    p = min(max(math.fsum(values) / len(values), 0.0), 1.0)
    if len(values) == 1:
        return Estimate(p, None, None, n)
    effective = float(groups)
    if 0 < p < 1:
        effective = float(n)
        variance, degrees = cluster_variance(values, p, clusters)
        if variance > 0:
            upper = (1 + confidence) / 2
            correction = (t_quantile(upper, max(n - 1, 1)) / t_quantile(upper, degrees)) ** 2
            effective = min(float(n), p * (1 - p) / variance * correction)
    low, high = wilson(min(p * effective, effective), effective, confidence)
    return Estimate(p, low, high, n)


def effective_size(values: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """How many independent values would know the mean as well (Kish): at most as many as there are, at least one.

    It is their number over the design effect, the factor by which clustering widens the mean's variance. Where all
    values are equal nothing can be estimated of how clusters differ, and it is the number of clusters. Values of a
    single cluster are compared with each other only, so each of them counts.
    """
    n, groups = len(values), len(set(clusters))
    if groups in (1, n):
        return float(n)
    centre = math.fsum(values) / n
    spread = _spread(values, centre)
    if spread == 0:
        return float(groups)
    variance, _ = cluster_variance(values, centre, clusters)
    return float(n) if variance == 0 else min(float(n), max(1.0, spread / variance))


def cluster_variance(values: Sequence[float], centre: float, clusters: Sequence[Hashable]) -> tuple[float, int]:
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


def _spread(values: Sequence[float], centre: float) -> float:
    """The variance of the values themselves (s²)."""
    return math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1)
