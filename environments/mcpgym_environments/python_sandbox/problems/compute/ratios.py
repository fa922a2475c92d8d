"""Sums and continued fractions, exactly."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from mcpgym_environments.python_sandbox.problems.answers import NumberAnswer
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import mistaken, pick, program

_TERMS = (3, 9, 18, 32, 55)
_SUM = """
from fractions import Fraction

total = Fraction(0)
for k in range(first, last + 1):
    if k % skip:
        total += (-1) ** k * Fraction(p * k + q, k * (k + c))
print(total)
"""
_NEST = """
from fractions import Fraction

value = Fraction(terms[-1])
for above, term in zip(reversed(numerators), reversed(terms[:-1])):
    value = term + above / value
print(value)
"""


def alternating(first: int, last: int, skip: int, p: int, q: int, c: int) -> Fraction:
    """The sum of (-1)^k (p k + q) / (k (k + c)) without multiples of ``skip``, over one denominator."""
    above, below = 0, 1
    for k in range(first, last + 1):
        if k % skip:
            term = (p * k + q) * (-1 if k % 2 else 1)
            above, below = above * k * (k + c) + term * below, below * k * (k + c)
    return Fraction(above, below)


def nested(terms: list[int], numerators: list[int]) -> Fraction:
    """t0 + n0 / (t1 + n1 / (t2 + ...)), by the recurrence of the convergents (Wallis)."""
    above, below, above_before, below_before = terms[0], 1, 1, 0
    for term, numerator in zip(terms[1:], numerators, strict=True):
        above, above_before = term * above + numerator * above_before, above
        below, below_before = term * below + numerator * below_before, below
    return Fraction(above, below)


def _make(random: Random, level: int) -> Problem:
    ask = pick(
        random,
        "Submit it as a fraction in lowest terms, such as -22/7.",
        "Give the exact value as a reduced fraction, written like 355/113.",
    )
    count = _TERMS[level - 1] + random.randrange(3)
    if random.random() < 0.5:
        first, p, q, c = random.randint(2, 12), random.randint(1, 9), random.randint(-8, 9), random.randint(1, 6)
        skip = random.choice((3, 4, 5, 7)) if level >= 3 else 10**6
        last = first + count - 1
        while last % skip == 0 or p * last + q == 0:
            last += 1
        right = alternating(first, last, skip, p, q, c)
        linear = f"{p if p > 1 else ''}k" + (f" {'-' if q < 0 else '+'} {abs(q)}" if q else "")
        without = f", leaving out every k that is a multiple of {skip}" if level >= 3 else ""
        text = pick(
            random,
            f"What is the sum of (-1)^k * ({linear}) / (k * (k + {c})) over all integers k from {first} to {last}, "
            f"both included{without}?",
            f"Add up the terms (-1)^k ({linear}) / (k (k + {c})) for k = {first}, {first + 1}, ..., {last}{without}.",
        )
        values: dict[str, object] = {"first": first, "last": last, "skip": skip, "p": p, "q": q, "c": c}
        code, slip = _SUM, ("last + 1", "last")
    else:
        terms = [random.randint(1, 30) for _ in range(count)]
        numerators = [random.randint(2, 9) if level >= 3 else 1 for _ in range(count - 1)]
        right = nested(terms, numerators)
        if level >= 3:
            text = (
                f"For lists t = {terms} and n = {numerators}, work out the continued fraction "
                "t[0] + n[0]/(t[1] + n[1]/(t[2] + ... + n[m-1]/t[m])), where t[m] is the last of t."
            )
        else:
            text = f"What is the value of the simple continued fraction [{terms[0]}; {', '.join(map(str, terms[1:]))}]?"
        values = {"terms": terms, "numerators": numerators}
        code, slip = _NEST, ("value = Fraction(terms[-1])", "value = Fraction(terms[-1] + 1)")
    return Problem(
        "exact-fractions",
        "compute",
        level,
        f"{text} {ask}",
        NumberAnswer(right),
        solution=program(code, **values),
        wrong=program(mistaken(code, *slip), **values),
        key=repr(values),
    )


RATIOS = Made("exact-fractions", "compute", "sums and continued fractions as one exact fraction", _make)
