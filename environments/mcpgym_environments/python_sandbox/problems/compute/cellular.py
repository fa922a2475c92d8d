"""A row of cells after so many steps of a rule: beyond a few thousand steps only the cycle helps."""

from __future__ import annotations

from random import Random

from mcpgym_environments.python_sandbox.problems.answers import WordAnswer
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import mistaken, pick, program

_RULES = (30, 45, 73, 105, 106, 109, 110, 122, 126, 129, 135, 146, 150, 154, 161, 182, 195, 225)
_WIDTHS = ((8, 10), (18, 24), (32, 44), (13, 16), (15, 18))
_STEPS = ((3, 6), (25, 60), (300, 600), (10**9, 10**10), (10**17, 10**18))
_LONGEST_ORBIT = 2_500
_CODE = """
def step(row):
    width = len(row)
    new = []
    for i in range(width):
        pattern = row[i - 1] + row[i] + row[(i + 1) % width]
        new.append(table[pattern])
    return "".join(new)


seen = {}
history = []
row = start
while row not in seen and len(history) < steps:
    seen[row] = len(history)
    history.append(row)
    row = step(row)
if row in seen and len(history) <= steps:
    first = seen[row]
    period = len(history) - first
    row = history[first + (steps - first) % period]
print(row)
"""


def evolve(rule: int, width: int, row: int, steps: int) -> int | None:
    """The row, as a number, after ``steps``; None where it does not repeat itself soon enough to tell."""
    full = (1 << width) - 1
    seen, history = {row: 0}, [row]
    for count in range(1, steps + 1):
        row = _step(rule, width, full, row)
        if row in seen:
            first = seen[row]
            return history[first + (steps - first) % (count - first)]
        if count > _LONGEST_ORBIT:
            return None
        seen[row] = count
        history.append(row)
    return row


def _step(rule: int, width: int, full: int, row: int) -> int:
    left, right = row >> 1 | (row & 1) << (width - 1), (row << 1 & full) | row >> (width - 1)
    new = 0
    for pattern in range(8):
        if rule >> pattern & 1:
            new |= (
                (left if pattern & 4 else ~left) & (row if pattern & 2 else ~row) & (right if pattern & 1 else ~right)
            )
    return new & full


def _make(random: Random, level: int) -> Problem:
    while True:
        rule, width = random.choice(_RULES), random.randint(*_WIDTHS[level - 1])
        row, steps = random.getrandbits(width), random.randint(*_STEPS[level - 1])
        end = evolve(rule, width, row, steps)
        if end is None or end in (0, (1 << width) - 1, row):
            continue
        off = evolve(rule, width, row, steps - 1)
        if off != end:
            break
    on, other = random.choice((("#", "-"), ("1", "0"), ("o", "x"), ("A", "B")))
    table = {
        "".join(on if pattern >> place & 1 else other for place in (2, 1, 0)): on if rule >> pattern & 1 else other
        for pattern in range(7, -1, -1)
    }
    start, right = [
        "".join(on if number >> place & 1 else other for place in range(width - 1, -1, -1)) for number in (row, end)
    ]
    rules = ", ".join(f"{pattern} -> {new}" for pattern, new in table.items())
    text = pick(
        random,
        f"{width} cells stand in a circle; written as a row, the last is a neighbour of the first. Each is {on} or "
        f"{other}. In every step all cells change at once, each by what its left neighbour, it itself and its right "
        f"neighbour are (in this order): {rules}. The row is now {start}. What is it after {steps} steps?",
        f"Apply this rule {steps} times to the cyclic row {start}: every cell is replaced, all at the same time, by "
        f"what the table gives for (left neighbour, cell, right neighbour): {rules}. The row is a ring of {width} "
        "cells: its first and last cell are neighbours. Which row results?",
    )
    ask = pick(random, f"Submit the row of {width} characters.", f"The answer is a string of {width} characters.")
    values = {"start": start, "steps": steps, "table": table}
    code = mistaken(_CODE, "def step(row):", "steps = steps - 1\n\n\ndef step(row):")
    return Problem(
        "cellular-automaton",
        "compute",
        level,
        f"{text} {ask}",
        WordAnswer(right, exact=True),
        solution=program(_CODE, **values),
        wrong=program(code, **values),
        key=repr((rule, width, row, steps)),
    )


CELLULAR = Made("cellular-automaton", "compute", "a ring of cells after up to 10^18 steps of a rule", _make)
