"""Shortest routes with a limit on tolls, and the number of spanning trees."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from random import Random

from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import (
    ask_whole,
    file_name,
    mistaken,
    pick,
    program,
    shuffled,
    whole,
)

Road = tuple[int, int, int, bool]
"""Two places, a length, and whether there is a toll."""

_PLACES = (8, 16, 30, 120, 350)
_ROUTE = """
import heapq

if path:
    lines = open(path, encoding="utf-8").read().splitlines()
else:
    lines = text.splitlines()
roads = {}
for line in lines:
    fields = line.split()
    one, other, length, toll = int(fields[0]), int(fields[1]), int(fields[2]), fields[-1] == "toll"
    roads.setdefault(one, []).append((other, length, toll))
    roads.setdefault(other, []).append((one, length, toll))
best = {}
queue = [(0, start, 0)]
while queue:
    so_far, place, tolls = heapq.heappop(queue)
    if (place, tolls) in best:
        continue
    best[place, tolls] = so_far
    for other, length, toll in roads.get(place, []):
        if tolls + toll <= most:
            heapq.heappush(queue, (so_far + length, other, tolls + toll))
print(min(length for (place, tolls), length in best.items() if place == goal))
"""
_TREES = """
from fractions import Fraction

matrix = [[Fraction(0)] * size for _ in range(size)]
for one, other in edges:
    matrix[one - 1][one - 1] += 1
    matrix[other - 1][other - 1] += 1
    matrix[one - 1][other - 1] -= 1
    matrix[other - 1][one - 1] -= 1
matrix = [row[1:] for row in matrix[1:]]
trees = Fraction(1)
for place in range(size - 1):
    pivot = next((row for row in range(place, size - 1) if matrix[row][place]), None)
    if pivot is None:
        trees = 0
        break
    if pivot != place:
        matrix[place], matrix[pivot] = matrix[pivot], matrix[place]
        trees = -trees
    trees *= matrix[place][place]
    for row in range(place + 1, size - 1):
        factor = matrix[row][place] / matrix[place][place]
        for column in range(place, size - 1):
            matrix[row][column] -= factor * matrix[place][column]
print(trees)
"""


def shortest(roads: Sequence[Road], start: int, goal: int, most: int, one_way: bool = False) -> int | None:
    """The length of the shortest route with at most ``most`` tolls, or None, layer by layer of the tolls (Dijkstra)."""
    near: dict[int, list[tuple[int, int, bool]]] = {}
    for one, other, length, toll in roads:
        near.setdefault(one, []).append((other, length, toll))
        if not one_way:
            near.setdefault(other, []).append((one, length, toll))
    best: dict[int, int] = {}  # the fewest tolls with which a place has been left
    queue = [(0, 0, start)]
    while queue:
        length, tolls, place = heapq.heappop(queue)
        if place == goal:
            return length
        if best.get(place, most + 1) <= tolls:
            continue
        best[place] = tolls
        for other, step, toll in near.get(place, ()):
            if tolls + toll <= most:
                heapq.heappush(queue, (length + step, tolls + toll, other))
    return None


def spanning_trees(size: int, edges: Sequence[tuple[int, int]]) -> int:
    """How many spanning trees a graph on 1 to ``size`` has: Kirchhoff's theorem, with Bareiss's exact elimination."""
    matrix = [[0] * size for _ in range(size)]
    for one, other in edges:
        matrix[one - 1][one - 1] += 1
        matrix[other - 1][other - 1] += 1
        matrix[one - 1][other - 1] -= 1
        matrix[other - 1][one - 1] -= 1
    rows = [row[1:] for row in matrix[1:]]
    count, before = size - 1, 1
    for place in range(count - 1):
        if rows[place][place] == 0:  # a principal minor of a Laplacian: then the graph is not connected
            return 0
        for row in range(place + 1, count):
            for column in range(place + 1, count):
                rows[row][column] = (
                    rows[row][column] * rows[place][place] - rows[row][place] * rows[place][column]
                ) // before
        before = rows[place][place]
    return rows[-1][-1]


def _route(random: Random, level: int) -> Problem:
    size = _PLACES[level - 1]
    while True:
        names = random.sample(range(10, 10 + 3 * size), size)
        roads: list[Road] = []
        for place in range(1, size):
            near = random.randrange(max(0, place - 6), place)
            roads += [(names[place], names[near], random.randint(50, 900), False)]
        for _ in range(size + size // 2):
            one, other = random.sample(range(size), 2)
            toll = level >= 3 and random.random() < 0.7
            roads.append((names[one], names[other], random.randint(30, 300 if toll else 900), toll))
        roads = [road if random.random() < 0.5 else (road[1], road[0], *road[2:]) for road in shuffled(random, roads)]
        start, goal = names[0], names[random.randrange(size // 2, size)]
        most = random.randint(1, 3) if level >= 3 else 0
        right = shortest(roads, start, goal, most)
        off = shortest(roads, start, goal, len(roads)) if level >= 3 else shortest(roads, start, goal, 0, one_way=True)
        if right is not None and off is not None and right != off:
            break
    lines = "\n".join(f"{one} {other} {length}{' toll' if toll else ''}" for one, other, length, toll in roads) + "\n"
    path = file_name(random, "txt", "roads", "network", "edges") if level >= 4 else ""
    where = f"in the file {path}" if path else "below"
    times = {1: "once", 2: "twice"}.get(most, f"{most} times")
    rule = (
        f" A line that ends with the word toll is a toll road; the route may use toll roads at most {times}."
        if most
        else ""
    )
    text = pick(
        random,
        f"Each line {where} is a road: the numbers of two junctions and its length in metres; every road can be "
        f"driven both ways, and two junctions may have several roads between them.{rule} How many metres long is "
        f"the shortest route from {start} to {goal}?",
        f"The lines {where} list the edges of an undirected graph with weights (node, node, weight; parallel edges "
        f"occur).{rule} What is the least total weight of a way from node {start} to node {goal}?",
    )
    values: dict[str, object] = {"path": path, "text": "" if path else lines, "start": start, "goal": goal}
    slip = (
        ("tolls + toll <= most", "True")
        if level >= 3
        else ("    roads.setdefault(other, []).append((one, length, toll))\n", "")
    )
    code = mistaken(_ROUTE, *slip)
    if level >= 3:  # without a limit the number of tolls must not count, or the search would not end soon
        code = mistaken(code, "so_far + length, other, tolls + toll", "so_far + length, other, 0")
    return Problem(
        "shortest-route",
        "compute",
        level,
        f"{text} {ask_whole(random)}" + ("" if path else f"\n\n{lines.rstrip()}"),
        whole(right),
        files={path: lines.encode()} if path else {},
        solution=program(_ROUTE, most=most, **values),
        wrong=program(code, most=most, **values),
        key="" if path else repr((roads, start, goal, most)),
    )


def _trees(random: Random, level: int) -> Problem:
    size = (7, 9, 11, 15, 20)[level - 1]
    edges = {tuple(sorted((place, random.randint(1, place - 1)))) for place in range(2, size + 1)}
    while len(edges) < size * 2 - 1:
        edges.add(tuple(sorted(random.sample(range(1, size + 1), 2))))
    while True:
        shown = [(one, other) for one, other in shuffled(random, sorted(edges))]
        right = spanning_trees(size, shown)
        if spanning_trees(size, shown[:-1]) != right:
            break
    lines = ", ".join(f"{one}-{other}" if random.random() < 0.5 else f"{other}-{one}" for one, other in shown)
    text = pick(
        random,
        f"A graph has the nodes 1 to {size} and these edges: {lines}. How many spanning trees does it have? (The nodes "
        "are told apart.)",
        f"There are {size} villages, numbered from 1, and these possible cables between them: {lines}. In how many "
        f"ways can {size - 1} of the cables be chosen such that all villages are connected?",
    )
    values = {"size": size, "edges": shown}
    return Problem(
        "spanning-trees",
        "compute",
        level,
        f"{text} {ask_whole(random)}",
        whole(right),
        solution=program(_TREES, **values),
        wrong=program(mistaken(_TREES, "in edges:", "in edges[:-1]:"), **values),
        key=repr((size, sorted(edges))),
    )


ROUTES = Made("shortest-route", "compute", "the shortest route through a network with at most so many tolls", _route)
TREES = Made("spanning-trees", "compute", "the number of spanning trees of a graph", _trees)
