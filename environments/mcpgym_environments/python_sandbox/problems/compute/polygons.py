"""Polygons with integer corners: the points inside, and the exact length of the way around."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cmp_to_key
from math import gcd
from random import Random

from mcpgym_environments.python_sandbox.problems.answers import SurdAnswer
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.surds import canonical
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, mistaken, pick, program, whole

Point = tuple[int, int]

_SIZES = ((4, 10), (6, 40), (9, 400), (14, 20_000), (24, 10**7))
_SCAN = """
def strictly_inside(x, y):
    crossings = 0
    for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1]):
        turn = (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1)
        if turn == 0 and min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2):
            return False
        if (y1 > y) != (y2 > y) and (turn > 0) == (y2 > y1):
            crossings += 1
    return crossings % 2 == 1


xs, ys = zip(*corners)
print(sum(strictly_inside(x, y) for x in range(min(xs), max(xs) + 1) for y in range(min(ys), max(ys) + 1)))
"""
_PICK = """
from math import gcd

twice, boundary = 0, 0
for (x1, y1), (x2, y2) in zip(corners, corners[1:] + corners[:1]):
    twice += x1 * y2 - x2 * y1
    boundary += gcd(x2 - x1, y2 - y1)
print((abs(twice) - boundary + 2) // 2)
"""
_LENGTH = """
total = {}
for (x1, y1), (x2, y2) in zip(stops, stops[1:] + stops[:1]):
    square, outside, factor = (x2 - x1) ** 2 + (y2 - y1) ** 2, 1, 2
    while factor * factor <= square:
        while square % (factor * factor) == 0:
            square //= factor * factor
            outside *= factor
        factor += 1
    total[square] = total.get(square, 0) + outside
print(" + ".join(f"{count}*sqrt({square})" if square > 1 else str(count) for square, count in sorted(total.items())))
"""


def inside(corners: Sequence[Point]) -> tuple[int, int]:
    """Integer points strictly inside a simple polygon, and on its boundary: the shoelace formula and Pick's theorem."""
    twice = boundary = 0
    for (x1, y1), (x2, y2) in zip(corners, [*corners[1:], corners[0]], strict=True):
        twice += x1 * y2 - x2 * y1
        boundary += gcd(x2 - x1, y2 - y1)
    return (abs(twice) - boundary + 2) // 2, boundary


def _star(random: Random, count: int, size: int) -> list[Point]:
    """A simple polygon: corners in order around the origin, which sees all of them, no two in one direction."""
    while True:
        points: dict[Point, Point] = {}
        while len(points) < count:
            x, y = random.randint(-size, size), random.randint(-size, size)
            if (x, y) != (0, 0):
                points.setdefault((x // gcd(x, y), y // gcd(x, y)), (x, y))
        corners = sorted(points.values(), key=cmp_to_key(_turn))
        # The origin sees every side from one hand: no gap between neighbours is half a turn or more.
        if all(_cross(one, other) > 0 for one, other in zip(corners, [*corners[1:], corners[0]], strict=True)):
            return corners


def _cross(one: Point, other: Point) -> int:
    return one[0] * other[1] - one[1] * other[0]


def _turn(one: Point, other: Point) -> int:
    """Which of two directions comes first, counterclockwise from the positive x axis; exact."""
    halves = [point[1] < 0 or (point[1] == 0 and point[0] < 0) for point in (one, other)]
    if halves[0] != halves[1]:
        return 1 if halves[0] else -1
    return -1 if _cross(one, other) > 0 else 1


def _points(random: Random, level: int) -> Problem:
    count, size = _SIZES[level - 1]
    while True:
        centre = random.randint(-size, size), random.randint(-size, size)
        corners = [(x + centre[0], y + centre[1]) for x, y in _star(random, count, size)]
        if random.random() < 0.5:
            corners.reverse()
        start = random.randrange(count)
        corners = corners[start:] + corners[:start]
        right, _ = inside(corners)
        if right > 4 ** (level + 1):
            break
    listed = ", ".join(f"({x}, {y})" for x, y in corners)
    text = pick(
        random,
        f"A polygon has the corners {listed}, joined by straight sides in this order, the last to the first. How many "
        "points with integer coordinates lie strictly inside it, those on its sides and corners not counted?",
        f"Walk along straight lines through {listed} and back to the first: a simple polygon. Count the lattice points "
        "(both coordinates integers) of its interior; a point on the boundary is not in the interior.",
    )
    code = _SCAN if level <= 2 else _PICK
    slip = ("return False", "return True") if level <= 2 else ("- boundary + 2", "+ boundary + 2")
    return Problem(
        "lattice-points",
        "compute",
        level,
        f"{text} {ask_whole(random)}",
        whole(right),
        solution=program(code, corners=corners),
        wrong=program(mistaken(code, *slip), corners=corners),
        key=repr(sorted(corners)),
    )


def _length(random: Random, level: int) -> Problem:
    count, size = ((3, 6), (6, 12), (10, 30), (16, 100), (26, 400))[level - 1]
    roots = [(1, 1), (1, 2), (2, 1), (1, 0), (0, 1), (1, 3), (2, 3), (3, 4), (1, 4)]
    while True:
        x, y = random.randint(-9, 9), random.randint(-9, 9)
        stops = [(x, y)]
        while len(stops) < count:
            across, up = random.choice(roots)
            times = random.randint(1, max(1, size // 4)) * random.choice((1, -1))
            x, y = x + times * across, y + times * up * random.choice((1, -1))
            stops.append((x, y))
        terms = tuple(
            (Fraction(1), (x2 - x1) ** 2 + (y2 - y1) ** 2)
            for (x1, y1), (x2, y2) in zip(stops, [*stops[1:], stops[0]], strict=True)
        )
        if 2 <= len(canonical(terms)) <= 2 + level and stops[-1] != stops[0] and len(set(stops)) == count:
            break
    listed = ", ".join(f"({x}, {y})" for x, y in stops)
    text = pick(
        random,
        f"A drone flies in straight lines through {listed} and from the last of these points straight back to the "
        "first. How long is its whole way, exactly?",
        f"What is the exact length of the closed path with these corners, in this order: {listed}? Its last corner is "
        "joined to the first by a straight line.",
    )
    ask = (
        "Submit it as a sum of integer multiples of square roots of square-free numbers, such as 7 + 3*sqrt(2) + "
        "sqrt(5); decimals are not accepted."
    )
    reduced = tuple((coefficient, radicand) for radicand, coefficient in canonical(terms).items())
    return Problem(
        "path-length",
        "compute",
        level,
        f"{text} {ask}",
        SurdAnswer(reduced),
        solution=program(_LENGTH, stops=stops),
        wrong=program(mistaken(_LENGTH, "zip(stops, stops[1:] + stops[:1])", "zip(stops, stops[1:])"), stops=stops),
        key=repr(stops),
    )


POINTS = Made("lattice-points", "compute", "points with integer coordinates inside a polygon", _points)
LENGTH = Made("path-length", "compute", "the exact length of a closed path, as a sum of square roots", _length)
