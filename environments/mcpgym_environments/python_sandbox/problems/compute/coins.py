"""In how many ways an amount is paid with coins of which there are only so many."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, mistaken, pick, program, shuffled, whole

_AMOUNTS = (120, 180, 700, 2_000, 5_000)
_KINDS = (4, 5, 6, 8, 10)
_CODE = """
ways = [1] + [0] * amount
for value, most in coins:
    new = [0] * (amount + 1)
    for total in range(amount + 1):
        for used in range(min(most, total // value) + 1):
            new[total] += ways[total - used * value]
    ways = new
print(ways[amount])
"""


def ways(coins: Sequence[tuple[int, int]], amount: int) -> int:
    """The coefficient of x^amount in the product of (1 - x^(value (most + 1))) / (1 - x^value)."""
    series = [1] + [0] * amount
    for value, most in coins:
        for total in range(value, amount + 1):
            series[total] += series[total - value]
        step = value * (most + 1)
        for total in range(amount, step - 1, -1):
            series[total] -= series[total - step]
    return series[amount]


def _make(random: Random, level: int) -> Problem:
    while True:
        amount = random.randint(_AMOUNTS[level - 1] // 2, _AMOUNTS[level - 1])
        values = sorted(random.sample(range(2, max(9, amount // 12)), _KINDS[level - 1]))
        coins = [(value, random.randint(1, 3 + amount // value * 2 // 3)) for value in values]
        right, unlimited = ways(coins, amount), ways([(value, amount) for value in values], amount)
        if max(20, 4 ** (level - 1)) < right < unlimited:
            break
    unit = pick(random, "cents", "pence", "crowns", "marks", "points", "grams")
    shown = shuffled(random, coins)
    supply = "; ".join(
        pick(random, f"{most} of {value} {unit}", f"at most {most} of {value} {unit}") for value, most in shown
    )
    things = "weights" if unit == "grams" else "stamps" if unit == "points" else "coins"
    text = pick(
        random,
        f"A box holds these {things}: {supply}. {things.capitalize()} of one value cannot be told apart. In how many "
        f"different ways can exactly {amount} {unit} be made up from it? Two ways differ when some value is used a "
        "different number of times; the order does not matter, and not everything need be used.",
        f"How many different selections of {things} come to exactly {amount} {unit}, when this is the supply: "
        f"{supply}? A selection is known by how many {things} of each value are in it (a value may be left out); order "
        "plays no part.",
    )
    return Problem(
        "coin-ways",
        "compute",
        level,
        f"{text} {ask_whole(random)}",
        whole(right),
        solution=program(_CODE, coins=coins, amount=amount),
        wrong=program(mistaken(_CODE, "min(most, total // value)", "(total // value)"), coins=coins, amount=amount),
        key=repr((coins, amount)),
    )


COINS = Made("coin-ways", "compute", "ways to make up an amount from a limited supply", _make)
