"""Paths through a grid with blocked points and a rule about steps in a row."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, mistaken, pick, program, shuffled, whole

Point = tuple[int, int]

_SIZES = ((4, 6), (7, 10), (10, 14), (14, 18), (18, 24))
_STEPS: tuple[Point, ...] = ((1, 0), (0, 1), (1, 1))
_CODE = """
from functools import cache

closed = set(blocked)


@cache
def paths(x, y, last, run):
    if x > width or y > height or (x, y) in closed:
        return 0
    if (x, y) == (width, height):
        return 1
    total = 0
    for step in steps:
        length = run + 1 if step == last else 1
        if length <= most:
            total += paths(x + step[0], y + step[1], step, length)
    return total


print(paths(0, 0, None, 0))
"""


def paths(width: int, height: int, blocked: Collection[Point], steps: tuple[Point, ...], most: int) -> int:
    """Paths from (0, 0) to (width, height), point by point, by the last step and how often it came in a row."""
    closed = set(blocked)
    reached: dict[Point, dict[tuple[Point, int], int]] = {(0, 0): {((0, 0), 0): 1}}
    for x in range(width + 1):
        for y in range(height + 1):
            if (x, y) in closed:
                continue
            for (last, run), ways in reached.get((x, y), {}).items():
                for step in steps:
                    length = run + 1 if step == last else 1
                    if length <= most:
                        there = reached.setdefault((x + step[0], y + step[1]), {})
                        there[step, length] = there.get((step, length), 0) + ways
    return sum(reached.get((width, height), {}).values())


def _make(random: Random, level: int) -> Problem:
    least, greatest = _SIZES[level - 1]
    steps = _STEPS if level >= 4 else _STEPS[:2]
    while True:
        width, height = random.randint(least, greatest), random.randint(least, greatest)
        most = random.randint(2, 4) if level >= 2 else width + height
        inner = [(x, y) for x in range(width + 1) for y in range(height + 1) if 0 < x + y < width + height]
        blocked = sorted(random.sample(inner, random.randint(2, 2 + 2 * level)))
        right = paths(width, height, blocked, steps, most)
        off = paths(width - 1, height - 1, blocked, steps, most)
        if right > 5 ** (level - 1) and right != off:
            break
    who = pick(random, "A robot", "A token", "A beetle", "A rook-like piece", "A cart")
    moves = "one to the right, (x+1, y), or one up, (x, y+1)" + (
        ", or one diagonally, (x+1, y+1)" if level >= 4 else ""
    )
    rule = (
        pick(
            random,
            f" It never makes more than {most} steps of the same kind in a row.",
            f" At most {most} consecutive steps may be of the same kind.",
        )
        if level >= 2
        else ""
    )
    points = ", ".join(f"({x}, {y})" for x, y in shuffled(random, blocked))
    text = pick(
        random,
        f"{who} goes from (0, 0) to ({width}, {height}). Each step leads {moves}.{rule} It may not visit any of these "
        f"points: {points}. How many different paths are there?",
        f"Count the paths from the point (0, 0) to the point ({width}, {height}) whose steps each lead {moves}, and "
        f"which avoid the points {points}.{rule}",
    )
    values = {"width": width, "height": height, "blocked": blocked, "steps": steps, "most": most}
    code = mistaken(_CODE, "closed =", "width, height = width - 1, height - 1\nclosed =")
    return Problem(
        "grid-paths",
        "compute",
        level,
        f"{text} {ask_whole(random)}",
        whole(right),
        solution=program(_CODE, **values),
        wrong=program(code, **values),
        key=repr(values),
    )


PATHS = Made("grid-paths", "compute", "paths through a grid with blocked points and a rule about steps in a row", _make)
