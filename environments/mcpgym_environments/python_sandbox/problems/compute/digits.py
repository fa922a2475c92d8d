"""How many numbers of a range have digits of a certain kind."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, mistaken, pick, program, whole

_TOPS = (900, 20_000, 150_000, 10**13, 10**30)
_BRUTE = """
def fits(n):
    digits = [int(digit) for digit in str(n)]
    steps = [abs(one - other) for one, other in zip(digits, digits[1:])]
    return sum(digits) % m == r and all(step >= gap for step in steps)


print(sum(fits(n) for n in range(low, high + 1)))
"""
_MEMO = """
from functools import cache


def up_to(top):
    text = str(top)

    @cache
    def count(place, last, rest, started, tight):
        if place == len(text):
            return int(started and rest == r)
        total = 0
        for digit in range(int(text[place]) + 1 if tight else 10):
            still = tight and digit == int(text[place])
            if not started and digit == 0:
                total += count(place + 1, 0, 0, False, still)
            elif not started or abs(digit - last) >= gap:
                total += count(place + 1, digit, (rest + digit) % m, True, still)
        return total

    return count(0, 0, 0, False, True)


print(up_to(high) - up_to(low - 1))
"""


def fits(n: int, m: int, r: int, gap: int) -> bool:
    """Whether the digits of ``n`` add up to r modulo m and neighbours differ by at least ``gap``."""
    text = str(n)
    if sum(map(int, text)) % m != r:
        return False
    return all(abs(int(one) - int(other)) >= gap for one, other in pairwise(text))


def below(top: int, m: int, r: int, gap: int) -> int:
    """How many positive integers < ``top`` fit: by length, then along the digits of ``top``."""
    text = str(top)
    # free[k][digit][rest]: ways to continue after `digit` with k digits that add up to `rest` modulo m
    free = [[[int(rest == 0) for rest in range(m)] for _ in range(10)]]
    for _ in range(len(text) - 1):
        before = free[-1]
        free.append(
            [
                [sum(before[d][(rest - d) % m] for d in range(10) if abs(d - digit) >= gap) for rest in range(m)]
                for digit in range(10)
            ]
        )
    total = 0
    for length in range(1, len(text)):
        total += sum(free[length - 1][digit][(r - digit) % m] for digit in range(1, 10))
    used = 0
    for place, letter in enumerate(text):
        before_ = int(text[place - 1]) if place else None
        for digit in range(0 if place else 1, int(letter)):
            if before_ is None or abs(digit - before_) >= gap:
                total += free[len(text) - place - 1][digit][(r - used - digit) % m]
        if before_ is not None and abs(int(letter) - before_) < gap:
            break
        used += int(letter)
    return total


def _make(random: Random, level: int) -> Problem:
    top = _TOPS[level - 1]
    while True:
        m, gap = random.randint(3, 13), random.randint(1, 3)
        r, high = random.randrange(m), random.randint(top // 2, top)
        low = random.randint(top // 100 + 1, top // 3)
        while not fits(high, m, r, gap) and high > low:  # the upper end counts: to leave it out is a mistake that shows
            high = high - 1 if level <= 2 else _lower(random, high)
        right = below(high + 1, m, r, gap) - below(low, m, r, gap)
        if high > low and right > 3 * level:
            break
    apart = {1: "no two neighbouring digits are equal", 2: "any two neighbouring digits differ by at least 2"}
    apart[3] = "any two neighbouring digits differ by at least 3"
    text = pick(
        random,
        f"How many integers n with {low} <= n <= {high} (both ends included) have decimal digits whose sum leaves the "
        f"remainder {r} when divided by {m}, and among which {apart[gap]}?",
        f"Write the integers from {low} to {high}, both included, in base ten. For how many of them is the sum of the "
        f"digits congruent to {r} modulo {m} while {apart[gap]}?",
    )
    values = {"low": low, "high": high, "m": m, "r": r, "gap": gap}
    code = _BRUTE if level <= 3 else _MEMO
    slip = ("high + 1", "high") if level <= 3 else ("up_to(high)", "up_to(high - 1)")
    return Problem(
        "digit-patterns",
        "compute",
        level,
        f"{text} {ask_whole(random)}",
        whole(right),
        solution=program(code, **values),
        wrong=program(mistaken(code, *slip), **values),
        key=repr(values),
    )


def _lower(random: Random, number: int) -> int:
    """A number of as many digits that is likely to have no neighbours alike: most long numbers have some."""
    text = str(number)
    digits = [int(text[0])]
    while len(digits) < len(text):
        digits.append((digits[-1] + random.randint(3, 7)) % 10)
    return int("".join(map(str, digits)))


DIGITS = Made("digit-patterns", "compute", "numbers of a range whose digits follow a pattern", _make)
