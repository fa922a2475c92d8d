"""How many integers of a range make a polynomial divisible: by hand hopeless, by counting residues quick."""

from __future__ import annotations

from collections.abc import Callable
from math import lcm
from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, mistaken, pick, program, whole

_SPANS = (300, 20_000, 250_000, 10**12, 10**18)
_BRUTE = """
count = 0
for n in range(low, high + 1):
    if (a * n**3 + b * n**2 + c * n + d) % m == 0 and n % k != r:
        count += 1
print(count)
"""
_PERIODIC = """
from math import lcm

period = lcm(m, k)


def fits(n):
    return (a * n**3 + b * n**2 + c * n + d) % m == 0 and n % k != r


def up_to(top):
    whole, rest = divmod(top + 1, period)
    return whole * sum(fits(n) for n in range(period)) + sum(fits(n) for n in range(rest))


print(up_to(high) - up_to(low - 1))
"""


def count(low: int, high: int, period: int, fits: Callable[[int], bool]) -> int:
    """How many integers from ``low`` to ``high`` fit, where whether one does repeats every ``period``."""
    return sum((high - n) // period - (low - 1 - n) // period for n in range(period) if fits(n))


def _polynomial(coefficients: tuple[int, int, int, int]) -> str:
    text = ""
    for coefficient, power in zip(coefficients, ("n^3", "n^2", "n", ""), strict=True):
        if not coefficient:
            continue
        size = "" if abs(coefficient) == 1 and power else str(abs(coefficient))
        sign = "-" if coefficient < 0 else "+"
        text += (f" {sign} " if text else sign.replace("+", "")) + f"{size}{'*' if size and power else ''}{power}"
    return text


def _make(random: Random, level: int) -> Problem:
    span = _SPANS[level - 1]
    while True:
        coefficients = (
            random.randint(1, 9) if level >= 3 else 0,
            random.randint(1, 12),
            random.randint(-30, 30),
            random.randint(-99, 99),
        )
        m, k = random.randint(*((5, 20) if level == 1 else (40, 250))), random.randint(3, 9)
        period, r = lcm(m, k), random.randrange(k)
        a, b, c, d = coefficients

        def fits(n: int, a: int = a, b: int = b, c: int = c, d: int = d, m: int = m, k: int = k, r: int = r) -> bool:
            return (a * n**3 + b * n**2 + c * n + d) % m == 0 and n % k != r

        low = random.randint(-span // 10, span // 10)
        high = low + random.randint(span // 2, span)
        found = sum(fits(n) for n in range(period))
        if 2 <= found < period // 2:
            break
    while not fits(high):  # the upper end counts: to leave it out is a mistake that shows
        high -= 1
    polynomial = _polynomial(coefficients)
    where = pick(
        random,
        f"with {low} <= n <= {high} (both ends included)",
        f"from {low} to {high} (both of these included)",
        f"in the range {low} to {high} (inclusive at both ends)",
    )
    text = pick(
        random,
        f"How many integers n {where} make {polynomial} divisible by {m} and leave a remainder other than {r} when "
        f"divided by {k}?",
        f"Count the integers n {where} for which {polynomial} is a multiple of {m}, leaving out every n with "
        f"n mod {k} = {r}.",
        f"Look at the integers n {where}. For how many of them does {m} divide {polynomial} while n is not congruent "
        f"to {r} modulo {k}?",
    )
    code = _BRUTE if level <= 3 else _PERIODIC
    slip = ("high + 1", "high") if level <= 3 else ("up_to(high)", "up_to(high - 1)")
    values = dict(zip("abcd", coefficients, strict=True)) | {"m": m, "k": k, "r": r, "low": low, "high": high}
    return Problem(
        "residues",
        "compute",
        level,
        f"{text} (Remainders are never negative: -1 mod {k} is {k - 1}.) {ask_whole(random)}",
        whole(count(low, high, period, fits)),
        solution=program(code, **values),
        wrong=program(mistaken(code, *slip), **values),
        key=repr(values),
    )


RESIDUES = Made("residues", "compute", "integers of a range for which a polynomial is divisible", _make)
