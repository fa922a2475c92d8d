"""A program with a heap of its own."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from mcpgym_environments.python_sandbox.problems.debug.making import Bug, Program, broken
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_SOURCE = '''
"""A waiting list that can be changed: a heap that knows where each name is."""


class Heap:
    def __init__(self):
        self.entries = []
        self.places = {}
        self.count = 0

    def before(self, one, other):
        """Whether one entry is served before another: rank, then who came first."""
        return (SIGNone[0], one[1]) < (SIGNother[0], other[1])

    def swap(self, i, j):
        self.entries[i], self.entries[j] = self.entries[j], self.entries[i]
        self.places[self.entries[i][2]] = i
        self.places[self.entries[j][2]] = j

    def up(self, i):
        while i > 0:
            parent = (i - 1) // 2
            if not self.before(self.entries[i], self.entries[parent]):
                return
            self.swap(i, parent)
            i = parent

    def down(self, i):
        while True:
            best = i
            for child in (2 * i + 1, 2 * i + 2):
                if child < len(self.entries) and self.before(self.entries[child], self.entries[best]):
                    best = child
            if best == i:
                return
            self.swap(i, best)
            i = best

    def add(self, name, rank):
        self.entries.append([rank, self.count, name])
        self.count += 1
        self.places[name] = len(self.entries) - 1
        self.up(len(self.entries) - 1)

    def remove(self, name):
        i = self.places[name]
        self.swap(i, len(self.entries) - 1)
        entry = self.entries.pop()
        del self.places[name]
        if i < len(self.entries):
            self.up(i)
            self.down(i)
        return entry

    def change(self, name, rank):
        i = self.places[name]
        self.entries[i][0] = rank
        self.up(i)
        self.down(self.places[name])


def FUNCTION(operations):
    heap = Heap()
    served = []
    for kind, name, rank in operations:
        if kind == "come":
            if name in heap.places:
                heap.change(name, rank)
            else:
                heap.add(name, rank)
        elif kind == "go":
            if name in heap.places:
                heap.remove(name)
        elif heap.entries:
            served.append(heap.remove(heap.entries[0][2])[2])
        else:
            served.append("NOBODY")
    return served
'''


def _bugs(sign: str) -> tuple[Bug, ...]:
    other = "" if sign else "-"
    return (
        Bug(f"({sign}one[0], one[1]) < ({sign}other[0], other[1])",
            f"({other}one[0], one[1]) < ({other}other[0], other[1])", 1),
        Bug(f"({sign}one[0], one[1]) < ({sign}other[0], other[1])", f"{sign}one[0] < {sign}other[0]", 2),
        Bug("parent = (i - 1) // 2", "parent = i // 2", 2),
        Bug("(2 * i + 1, 2 * i + 2)", "(2 * i + 1,)", 2),
        Bug("(2 * i + 1, 2 * i + 2)", "(2 * i, 2 * i + 1)", 3),
        Bug("self.entries[best]):", "self.entries[i]):", 3),
        Bug("        self.places[self.entries[j][2]] = j\n", "", 3),
        Bug("        self.count += 1\n", "", 2),
        Bug("        self.up(len(self.entries) - 1)\n", "", 1),
        Bug("            self.up(i)\n            self.down(i)\n", "            self.up(i)\n", 2),
        Bug("        del self.places[name]\n", "", 1),
        Bug("        self.entries[i][0] = rank\n", "        self.entries[i][0] += rank\n", 1),
        Bug("        self.up(i)\n        self.down(self.places[name])\n", "        self.up(i)\n", 3),
        Bug("        if i < len(self.entries):\n            self.up(i)",
            "        if i <= len(self.entries):\n            self.up(i)", 1),
        Bug("child < len(self.entries) and", "child < len(self.entries) - 1 and", 3),
    )  # fmt: skip


def _operations(random: Random, count: int) -> list[list[Any]]:
    names = ["Ada", "Bo", "Cy", "Dot", "Eli", "Flo", "Gus", "Hal", "Ida", "Jo", "Kay", "Lou"][: random.randint(3, 12)]
    made: list[list[Any]] = []
    for _ in range(count):
        draw = random.random()
        if draw < 0.62:
            made.append(["come", random.choice(names), random.randint(1, 5)])
        else:
            made.append(["go", random.choice(names), 0] if draw < 0.72 else ["serve", "", 0])
    return [*made, *[["serve", "", 0]] * random.randint(0, len(names))]


def _inputs(random: Random) -> Iterator[Arguments]:
    yield ([],)
    yield ([["serve", "", 0]],)
    yield ([["come", "Ada", 1], ["go", "Ada", 0], ["serve", "", 0]],)
    yield ([*[["come", name, 2] for name in ("Bo", "Ada", "Cy", "Dot", "Eli")], *[["serve", "", 0]] * 6],)
    yield ([["come", "Ada", 3], ["come", "Bo", 2], ["come", "Ada", 1], ["come", "Bo", 5], *[["serve", "", 0]] * 2],)
    while True:
        yield (_operations(random, random.randint(6, 60)),)


def _make(random: Random, level: int) -> Problem:
    function, nobody = (
        random.choice(("serve_all", "waiting_list", "run_queue", "office")),
        random.choice(("", "-", "nobody")),
    )
    high = random.random() < 0.5
    sign = "-" if high else ""
    program = Program(
        function,
        {"operations": "a list of [kind, name, rank]: two strings and an integer"},
        f"""
        A waiting list, worked through operation by operation. 'come': the name joins with that rank; if it waits
        already,
        it only gets the new rank, and keeps the moment at which it joined. 'go': the name leaves, if it waits (one
        that comes
        back later joins anew). 'serve': of those that wait, the one with the {"greatest" if high else "smallest"}
        rank is served and leaves; among equal ranks the one that joined first. If none waits, {nobody!r} is served.

        The result is the list of those that were served, in order.
        """,
        _SOURCE.replace("FUNCTION", function).replace("NOBODY", nobody).replace("SIGN", sign),
        _bugs(sign),
        _inputs,
        lambda random: (_operations(random, random.randint(4, 9)),),
    )
    return broken("broken-queue", level, random, program)


GENERATOR = Made("broken-queue", "debug", "a program that keeps a waiting list in a heap", _make)
