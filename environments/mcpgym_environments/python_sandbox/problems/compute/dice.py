"""Exact probabilities of a throw of several dice."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod
from random import Random

from mcpgym_environments.python_sandbox.problems.answers import NumberAnswer
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import listed, mistaken, pick, program

_COUNTS = ((2, 3), (4, 5), (6, 7), (9, 10), (13, 15))
_CODE = """
from fractions import Fraction
from math import prod

states = {(0, 0, 0): 1}
for sides in dice:
    new = {}
    for (total, high, ones), ways in states.items():
        for face in range(1, sides + 1):
            state = (total + face) % m, max(high, face), min(ones + (face == 1), most_ones + 1)
            new[state] = new.get(state, 0) + ways
    states = new
good = sum(
    ways for (total, high, ones), ways in states.items() if total == r and high >= least and ones <= most_ones
)
print(Fraction(good, prod(dice)))
"""


def favourable(dice: Sequence[int], m: int, r: int, least: int, most_ones: int) -> int:
    """Throws whose sum is r modulo m, with a face of at least ``least`` and at most ``most_ones`` ones."""
    return _bounded(dice, m, r, max(dice), most_ones) - _bounded(dice, m, r, least - 1, most_ones)


def _bounded(dice: Sequence[int], m: int, r: int, top: int, most_ones: int) -> int:
    """The same with every face at most ``top``: a polynomial in two variables, x for the sum and y for the ones."""
    table = [[0] * (most_ones + 1) for _ in range(m)]
    table[0][0] = 1
    for sides in dice:
        new = [[0] * (most_ones + 1) for _ in range(m)]
        for total, row in enumerate(table):
            for ones, ways in enumerate(row):
                if not ways or top < 1:
                    continue
                if ones < most_ones:
                    new[(total + 1) % m][ones + 1] += ways
                for face in range(2, min(sides, top) + 1):
                    new[(total + face) % m][ones] += ways
        table = new
    return sum(table[r])


def _make(random: Random, level: int) -> Problem:
    while True:
        count = random.randint(*_COUNTS[level - 1])
        dice = sorted(random.choice((4, 6, 6, 8, 10, 12, 20)) for _ in range(count))
        m, least = random.randint(3, 11), random.randint(3, max(dice))
        r, most_ones = random.randrange(m), random.randint(0, 2) if level >= 2 else count
        good = favourable(dice, m, r, least, most_ones)
        off = favourable(dice, m, r, least + 1, most_ones)
        if good not in (0, off):
            break
    kinds = [
        f"{dice.count(sides)} {'die' if dice.count(sides) == 1 else 'dice'} with {sides} faces"
        for sides in sorted(set(dice))
    ]
    rules = [
        f"that the sum leaves the remainder {r} when divided by {m}",
        f"that the highest number is at least {least}",
    ]
    others = [f"that the total is congruent to {r} modulo {m}", f"that some die shows {least} or more"]
    if level >= 2:
        ones = f"that at most {most_ones} of the dice {'shows' if most_ones == 1 else 'show'} a 1"
        for conditions in (rules, others):
            conditions.append(ones if most_ones else "that no die shows a 1")
    text = pick(
        random,
        f"Fair dice are thrown once, all together: {listed(kinds)} (a die with s faces shows 1 to s). What is the "
        f"probability {listed(rules)}?",
        f"Throw {listed(kinds)}, each fair and numbered from 1. How likely is it, at the same time, {listed(others)}?",
    )
    values = {"dice": dice, "m": m, "r": r, "least": least, "most_ones": most_ones}
    return Problem(
        "dice-odds",
        "compute",
        level,
        f"{text} Submit the exact probability as a fraction in lowest terms, such as 5/36.",
        NumberAnswer(Fraction(good, prod(dice))),
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, "high >= least", "high > least"), **values),
        key=repr(values),
    )


DICE = Made("dice-odds", "compute", "exact probabilities of a throw of many dice", _make)
