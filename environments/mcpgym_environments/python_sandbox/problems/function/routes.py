"""Cheapest routes on a map, with tolls, passes and gates; ties are decided by stated rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random
from typing import Any

from mcpgym_environments.python_sandbox.problems.function.making import Wanted, written
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_SOLUTION = """
def {function}({parameters}):
    near = {{}}
    for a, b, *cost in roads:
        cost = {cost}
        near.setdefault(a, []).append((b, cost))
        {both}
    best = {{}}
    waiting = [((0, 0, [start]), start, 0)]
    while waiting:
        label, place, used = waiting.pop(0)
        if (place, used) in best and best[place, used] <= label:
            continue
        best[place, used] = label
        total, length, path = label
        for other, cost in near.get(place, []):
            for free in {choices}:
                if used + free > {limit}:
                    continue
                leave = total
                {gate}
                reached = leave + (cost if not free else {reduced}){toll}
                waiting.append(((reached, length + 1, path + [other]), other, used + free))
    ends = [label for (place, used), label in best.items() if place == goal]
    if not ends:
        return {nothing!r}
    total, length, path = min(ends)
    return {result}
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a route costs."""

    one_way: bool
    weighted: bool
    tolls: bool
    passes: bool
    halved: bool
    period: int

    def best(
        self, roads: list[list[Any]], start: str, goal: str, tolls: dict[str, int], passes: int, gates: list[str]
    ) -> tuple[int, list[str]] | None:
        """The cheapest route, of those the one with the fewest roads, of those the first in the alphabet."""
        near: dict[str, list[tuple[str, int]]] = {}
        for a, b, *rest in roads:
            near.setdefault(a, []).append((b, rest[0] if rest else 1))
            if not self.one_way:
                near.setdefault(b, []).append((a, rest[0] if rest else 1))
        heap: list[tuple[int, int, tuple[str, ...], int]] = [(0, 0, (start,), 0)]
        done: set[tuple[str, int]] = set()
        while heap:
            total, length, path, used = heappop(heap)
            place = path[-1]
            if place == goal:
                return total, list(path)
            if (place, used) in done:
                continue
            done.add((place, used))
            leave = total + (-total % self.period if place in gates else 0)
            for other, cost in near.get(place, ()):
                toll = tolls.get(other, 0)
                heappush(heap, (leave + cost + toll, length + 1, (*path, other), used))
                if used < passes:
                    reduced = (cost + 1) // 2 if self.halved else 0
                    heappush(heap, (leave + reduced + toll, length + 1, (*path, other), used + 1))
        return None


def _map(random: Random, places: int, roads: int, weighted: bool) -> tuple[list[list[Any]], list[str]]:
    names = sorted(random.sample([a + b for a in "BDKLMR" for b in "aeiou"], places))
    made: dict[tuple[str, ...], list[Any]] = {}
    for _ in range(roads):
        pair = random.sample(names, 2)
        made.setdefault(tuple(sorted(pair)), [*pair, *([random.randint(1, 9)] if weighted else [])])
    return list(made.values()), names


def _make(random: Random, level: int) -> Problem:
    rules = Rules(
        random.random() < 0.5, level >= 2, level in (3, 5) or (level == 4 and random.random() < 0.5), level == 4,
        random.random() < 0.5, random.randint(3, 7) if level == 5 else 1,
    )  # fmt: skip
    nothing: Any = random.choice((None, [], "none"))
    whole = random.random() < 0.5 or level == 1
    function = random.choice(("route", "best_way", "travel", "find_route"))

    def reference(roads: list[list[Any]], start: str, goal: str, *more: Any) -> Any:
        rest = list(more)
        tolls = rest.pop(0) if rules.tolls else {}
        passes = rest.pop(0) if rules.passes else 0
        gates = rest.pop(0) if rules.period > 1 else []
        found = rules.best(roads, start, goal, tolls, passes, gates)
        if found is None:
            return nothing
        return (
            found[1]
            if level == 1
            else found[0]
            if rules.period > 1
            else list(found)
            if whole
            else [found[0], len(found[1]) - 1]
        )

    def arguments(random: Random, places: int, roads: int, ends: tuple[str, str] | None = None) -> Arguments:
        made, names = _map(random, places, roads, rules.weighted)
        start, goal = ends or random.sample(names, 2)
        more: list[Any] = []
        if rules.tolls:
            more.append({name: random.randint(1, 6) for name in names if random.random() < 0.5})
        if rules.passes:
            more.append(random.randint(0, 2))
        if rules.period > 1:
            more.append([name for name in names if random.random() < 0.5])
        return (made, start, goal, *more)

    def found(places: int, roads: int) -> Arguments:
        """Of a few maps the first on which there is a route, to be shown."""
        drawn = [arguments(random, places, roads) for _ in range(8)]
        return next((each for each in drawn if reference(*each) != nothing), drawn[0])

    def inputs(random: Random) -> Iterator[Arguments]:
        empty = arguments(random, 2, 0)
        yield empty
        yield (empty[0], empty[1], empty[1], *empty[3:])
        yield arguments(random, 2, 1)
        yield arguments(random, 6, 15)
        yield arguments(random, 12, 11)
        while True:
            places = random.randint(5, 12)
            yield arguments(random, places, random.randint(places, 3 * places))

    cost = [1, "cost"] if rules.weighted else [1, ""]
    parameters = {
        "roads": f"a list of [from, to{', cost' * rules.weighted}]"
        + ("; from and to are names" + ", cost is an integer, at least 1" * rules.weighted)
        + "; no two roads join the same two places",
        "start": "the name of the place where one begins",
        "goal": "the name of the place to be reached; it may be the start, and either may be on no road",
    }
    ways = "only from their first place to their second" if rules.one_way else "in both directions"
    lines = [f"Roads are used {ways}. "
             f"Find the route from start to goal "
             f"{'that is cheapest' if rules.weighted else 'with the fewest roads'}."]  # fmt: skip
    if rules.tolls:
        parameters["tolls"] = "a dict, name of a place to an integer"
        lines.append("Each time one comes to a place with a toll, that is added to the cost (not for the start, "
                     "where one is already; for the goal too).")  # fmt: skip
    if rules.passes:
        parameters["passes"] = "how many passes one has (0 or more)"
        lines.append(
            "On each road one may use up one pass: the cost of that road is then "
            + ("half as much, rounded up" if rules.halved else "0")
            + (" (a toll remains)." if rules.tolls else ".")
        )
    if rules.period > 1:
        parameters["gates"] = "a list of names of places"
        lines.append(
            f"Costs (and tolls) are times: one starts at time 0, a road takes its cost, and a toll is waited for on "
            f"arrival. A "
            f"place in gates can be left, from then on, only at times that are multiples of {rules.period} (0 is "
            f"one): one "
            f"waits there until then. At the goal one does not wait. The cost of a route is the time at which it ends."
        )
    ties = [
        "the one with the fewest roads",
        "of those the one whose list of places comes first (as Python compares lists)",
    ]
    lines.append("Among equals take " + ", ".join(ties if rules.weighted else ["that", *ties[1:]][1:]) + ".")
    if rules.period > 1:
        lines.pop()
    if level == 1:
        lines[-1] = "Among equals take the one whose list of places comes first (as Python compares lists)."
    places = "the list of the places on the way, start and goal included"
    returned, result = "[cost, how many roads]", "[total, length]"
    if rules.period > 1:  # with waiting the cheapest way to a place may not be the first part of the best way on
        returned, result = "the cost, an integer", "total"
    elif level == 1:
        returned, result = places, "path"
    elif whole:
        returned, result = f"[cost, places], where places is {places}", "[total, path]"
    wanted = Wanted(
        function,
        parameters,
        "\n".join(lines),
        f"{returned}; or {nothing!r} if there is no route.",
        reference,
        inputs,
        [found(4, 5), found(6, 12)],
        _SOLUTION.format(
            function=function, parameters=", ".join(parameters), cost="cost[0]" if cost[1] else "1",
            both="pass" if rules.one_way else "near.setdefault(b, []).append((a, cost))",
            choices="(0, 1)" if rules.passes else "(0,)", limit="passes" if rules.passes else "0",
            gate=f"if place in gates: leave = -(-leave // {rules.period}) * {rules.period}"
            if rules.period > 1 else "pass",
            reduced="-(-cost // 2)" if rules.halved else "0", toll=" + tolls.get(other, 0)" if rules.tolls else "",
            nothing=nothing, result=result,
        ),
        ("(0, 0, [start])", "(0, 0, [])") if level == 1
        else ("cost = cost[0]", "cost = 1") if level == 2
        else ("+ tolls.get(other, 0)", "+ tolls.get(place, 0)") if rules.tolls
        else ("used + free > ", "used + free >= "),
    )  # fmt: skip
    return written("routes", level, wanted)


GENERATOR = Made("routes", "function", "cheapest routes with tolls, passes and gates", _make)
