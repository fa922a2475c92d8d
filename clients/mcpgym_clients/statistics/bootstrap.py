"""The bootstrap's interval of a mean: for values whose distribution is far from normal and not so few.

References:
    Efron, B. (1987). Better bootstrap confidence intervals. JASA 82: the BCa interval.
    Davison, A. C. and Hinkley, D. V. (1997). Bootstrap Methods and their Application. Cambridge: clusters are drawn as
        wholes (section 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym_clients.statistics.estimates import CONFIDENCE, Estimate

RESAMPLES = 10_000
_AT_ONCE = 4_000_000
"""Draws held in memory at a time, at most."""


def bootstrap(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    confidence: float = CONFIDENCE,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    corrected: bool = True,
) -> Estimate:
    """The mean with its bootstrap interval. Whole clusters are drawn; values of a single cluster are drawn one by one.

    Args:
        values: not empty.
        clusters: which of them belong together.
        confidence: between 0 and 1.
        resamples: how often the sample is drawn anew.
        seed: of the draws: the same seed gives the same interval.
        corrected: for bias and skew (BCa); otherwise the plain percentiles.

    Raises:
        ConfigurationError: numpy is not installed.
    """
    n = len(values)
    centre = math.fsum(values) / n
    if n == 1:
        return Estimate(centre, None, None, 1)
    np = _numpy()
    named = clusters if len(set(clusters)) > 1 else range(n)
    places: dict[Hashable, int] = {}
    which = np.array([places.setdefault(cluster, len(places)) for cluster in named])
    sums = np.bincount(which, weights=np.array(values, dtype=float))
    counts = np.bincount(which).astype(float)
    drawn = np.sort(_means(np, sums, counts, resamples, seed))
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    if corrected:
        tails = _bca(np, tails, drawn, sums, counts, centre)
    low, high = (float(edge) for edge in np.quantile(drawn, tails))
    return Estimate(centre, min(low, centre), max(high, centre), n)


def _means(np: Any, sums: Any, counts: Any, resamples: int, seed: int) -> Any:
    """The means of as many samples, drawn from the clusters with replacement."""
    random = np.random.default_rng(seed)
    groups = len(sums)
    block = max(1, _AT_ONCE // groups)
    found = []
    for first in range(0, resamples, block):
        drawn = random.integers(0, groups, (min(block, resamples - first), groups))
        found.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    return np.concatenate(found)


def _bca(np: Any, tails: Sequence[float], drawn: Any, sums: Any, counts: Any, centre: float) -> list[float]:
    """The percentiles to read instead of ``tails``: z0 corrects the bias, ``bend`` (a) the skew, by the jackknife."""
    normal = NormalDist()
    below = ((drawn < centre).sum() + (drawn == centre).sum() / 2) / len(drawn)
    if not 0 < below < 1:
        return list(tails)
    z0 = normal.inv_cdf(float(below))
    without = (sums.sum() - sums) / (counts.sum() - counts)
    away = without.mean() - without
    spread = float((away**2).sum())
    bend = float((away**3).sum()) / (6 * spread**1.5) if spread > 0 else 0.0
    read = []
    for tail in tails:
        z = z0 + normal.inv_cdf(tail)
        read.append(normal.cdf(z0 + z / (1 - bend * z)))
    return read


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ConfigurationError("the bootstrap needs numpy: pip install numpy, or take Student's t interval") from None
    return numpy
