"""Student's t distribution.

References:
    Student (1908). The probable error of a mean. Biometrika 6.
"""

from __future__ import annotations

import math
from functools import cache


@cache
def t_quantile(probability: float, degrees: float) -> float:
    """The quantile of Student's t distribution, for a probability of at least one half; found by bisection.

    Raises:
        ValueError: the probability is none of these, or there is less than one degree of freedom.
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


def t_beyond(t: float, degrees: float) -> float:
    """The chance of a value at least as far from 0 as ``t``, on either side: the p-value of a t statistic.

    ``degrees`` need not be a whole number (Welch and Satterthwaite's are none).
    """
    return 0.0 if math.isinf(t) else _incomplete_beta(degrees / (degrees + t * t), degrees / 2, 0.5)


def _t_cdf(t: float, degrees: float) -> float:
    return 1 - t_beyond(t, degrees) / 2


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
