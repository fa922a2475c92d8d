"""People in a circle are counted out by a rule that changes: a process to be simulated."""

from __future__ import annotations

from random import Random

from mcpgym_environments.python_sandbox.problems.answers import ListAnswer
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import mistaken, pick, program, whole

_PEOPLE = ((9, 14), (50, 90), (300, 600), (1_500, 2_500), (4_000, 6_000))
_CODE = """
from collections import deque

circle = deque(range(1, people + 1))
out = []
count = first
while circle:
    circle.rotate(-(count - 1))
    out.append(circle.popleft())
    count = (a * count + b) % c + 1
print(*out[-3:])
"""


def counted_out(people: int, first: int, a: int, b: int, c: int, skip: int = 1) -> list[int]:
    """The order in which people leave, by their places in a list."""
    circle, out, place, count = list(range(1, people + 1)), [], 0, first
    while circle:
        place = (place + count - skip) % len(circle)
        out.append(circle.pop(place))
        count = (a * count + b) % c + 1
    return out


def _make(random: Random, level: int) -> Problem:
    people = random.randint(*_PEOPLE[level - 1])
    while True:
        c = random.randint(people // 2 + 3, 2 * people)
        first, a, b = random.randint(3, c), random.randint(2, 30), random.randint(1, 50)
        last = counted_out(people, first, a, b, c)[-3:]
        if last != counted_out(people, first, a, b, c, skip=0)[-3:] and last != sorted(last):
            break
    who = pick(random, "people", "children", "players", "knights", "sailors")
    text = pick(
        random,
        f"{people} {who}, numbered 1 to {people}, stand in a circle in this order. The count starts at number 1, who "
        f"is counted as one. In the first round they are counted up to {first}, and the one reached leaves. The count "
        f"then goes on from the next one still in the circle, who is again counted as one, but up to another number: "
        f"after a round with the number k the next number is ((k * {a} + {b}) mod {c}) + 1. So it goes until all have "
        "left. Who are the last three to leave?",
        f"Numbers 1 to {people} are written around a circle, clockwise. A counter k begins at {first}. Again and "
        f"again: starting with the current number as one, count k numbers clockwise (around the circle as often as "
        f"needed), strike out the k-th, make the next remaining number clockwise the current one, and replace k by "
        f"((k * {a} + {b}) mod {c}) + 1. At first the current number is 1. Which three numbers are struck out last?",
    )
    values = {"people": people, "first": first, "a": a, "b": b, "c": c}
    return Problem(
        "counting-out",
        "compute",
        level,
        f"{text} Submit the three numbers in the order in which they go, with commas between.",
        ListAnswer(tuple(map(whole, last))),
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, "-(count - 1)", "-count"), **values),
        key=repr(values),
    )


CIRCLE = Made("counting-out", "compute", "who leaves a circle last when counted out by a changing number", _make)
