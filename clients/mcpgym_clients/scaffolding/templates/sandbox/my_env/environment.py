"""Problems to solve with Python in a sandbox. The sandbox, its tools and the judging are mcpgym's, the problems yours.

A problem has a text, an answer that is exact, a solution that prints it, and a plausible mistake.
"""

from __future__ import annotations

from random import Random

from mcpgym_environments.python_sandbox import PythonSandbox, PythonSandboxConfig
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import listed, mistaken, program, whole

CHANGE = """
count = [1] + [0] * amount
for coin in coins:
    for total in range(coin, amount + 1):
        count[total] += count[total - coin]
print(count[amount])
"""
CHAIN = """
steps = 0
while n != 1:
    n = n // 2 if n % 2 == 0 else 3 * n + 1
    steps += 1
print(steps)
"""


def ways(amount: int, coins: list[int]) -> int:
    """In how many ways coins, each used as often as one likes, add up to an amount."""
    if amount < 0 or not coins:
        return 0
    return 1 if amount == 0 else ways(amount - coins[0], coins) + ways(amount, coins[1:])


def chain(n: int) -> int:
    """How many steps of halving, or tripling and adding one, lead from a number to 1."""
    return 0 if n == 1 else 1 + chain(n // 2 if n % 2 == 0 else 3 * n + 1)


def change(random: Random, level: int) -> Problem:
    """In how many ways an amount can be paid."""
    coins = sorted(random.sample(range(3, 10 + 2 * level), 2 + level // 2))
    amount = random.randint(20, 60) + 20 * level
    solution = program(CHANGE, coins=coins, amount=amount)
    return Problem(
        generator="change",
        family="compute",
        level=level,
        text=f"In how many ways can one pay {amount} with coins of {listed(coins)}, each used as often as one likes?",
        answer=whole(ways(amount, coins)),
        solution=solution,
        wrong=mistaken(solution, "print(count[amount])", "print(count[amount] + 1)"),
    )


def halving(random: Random, level: int) -> Problem:
    """How long a chain of halving and tripling is."""
    start = random.randint(10 ** (level + 1), 10 ** (level + 2))
    solution = program(CHAIN, n=start)
    return Problem(
        generator="halving",
        family="compute",
        level=level,
        text=f"Begin with {start}. Halve an even number; triple an odd one and add 1. After how many steps is it 1?",
        answer=whole(chain(start)),
        solution=solution,
        wrong=mistaken(solution, "steps = 0", "steps = 1"),
    )


class MyEnvConfig(PythonSandboxConfig):
    """As the Python sandbox's, but for what is said here."""

    packages: str = "none"
    """What the code can import besides the standard library: none, numpy, or numpy,pandas."""


class MyEnv(PythonSandbox):
    """Problems of our own in the Python sandbox."""

    name = "my-env"
    description = "DESCRIPTION"
    config_class = MyEnvConfig
    generators = (
        Made("change", "compute", "in how many ways an amount can be paid", change),
        Made("halving", "compute", "how long a chain of halving and tripling is", halving),
    )
