"""A program that values the stock of a warehouse."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from mcpgym_environments.python_sandbox.problems.debug.making import Bug, Program, broken
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_SOURCE = '''
"""Keeps the lots of a warehouse, and what was earned with them."""


class Warehouse:
    def __init__(self):
        self.lots = {}
        self.profit = 0
        self.refused = []

    def buy(self, item, count, price):
        lots = self.lots.setdefault(item, [])
        if lots and lots[-1][1] == price:
            lots[-1][0] += count
        else:
            lots.append([count, price])

    def held(self, item):
        return sum(count for count, _ in self.lots.get(item, []))

    def sell(self, item, count, price):
        if self.held(item) < count:
            self.refused.append(item)
            return
        left = count
        while left > 0:
            lot = self.lots[item][END]
            taken = min(left, lot[0])
            self.profit += taken * (price - lot[1])
            lot[0] -= taken
            left -= taken
            if lot[0] == 0:
                self.lots[item].pop(END)
        if not self.lots.get(item):
            self.lots.pop(item, None)

    def value(self):
        return sum(count * price for lots in self.lots.values() for count, price in lots)


def FUNCTION(operations):
    house = Warehouse()
    for kind, item, count, price in operations:
        if kind == "buy":
            house.buy(item, count, price)
        elif kind == "sell":
            house.sell(item, count, price)
        elif kind == "lose":
            house.sell(item, min(count, house.held(item)), 0)
    stock = {item: house.held(item) for item in sorted(house.lots)}
    return {"profit": house.profit, "value": house.value(), "stock": stock, "refused": house.refused}
'''


def _bugs(end: str) -> tuple[Bug, ...]:
    other = "-1" if end == "0" else "0"
    return (
        Bug(f"lot = self.lots[item][{end}]", f"lot = self.lots[item][{other}]", 2),
        Bug(f"self.lots[item].pop({end})", f"self.lots[item].pop({other})", 3),
        Bug("self.held(item) < count", "self.held(item) <= count", 1),
        Bug("taken * (price - lot[1])", "count * (price - lot[1])", 1),
        Bug("lots[-1][0] += count", "lots[-1][0] = count", 3),
        Bug("lots[-1][1] == price", "lots[0][1] == price", 3),
        Bug("        if not self.lots.get(item):\n            self.lots.pop(item, None)\n", "", 2),
        Bug("min(count, house.held(item))", "count", 2),
        Bug("self.profit = 0", "self.profit = None", 1),
        Bug("            self.refused.append(item)\n            return\n",
            "            self.refused.append(item)\n            count = self.held(item)\n", 2),
        Bug("count * price for lots", "price for lots", 1),
        Bug("self.lots.get(item, [])", "self.lots[item]", 1),
    )  # fmt: skip


def _operations(random: Random, count: int, items: int) -> list[list[Any]]:
    names = random.sample(["bolts", "cable", "fuses", "lamps", "nails", "pipes"], items)
    made: list[list[Any]] = []
    for _ in range(count):
        kind = random.choice(("buy", "buy", "buy", "sell", "sell", "lose"))
        made.append([kind, random.choice(names), random.randint(1, 9), 0 if kind == "lose" else random.randint(2, 6)])
    return made


def _inputs(random: Random) -> Iterator[Arguments]:
    yield ([],)
    yield ([["sell", "bolts", 1, 5]],)
    yield ([["buy", "bolts", 4, 3], ["sell", "bolts", 4, 5]],)
    yield ([["buy", "lamps", 4, 3], ["buy", "lamps", 2, 5], ["buy", "lamps", 3, 3], ["sell", "lamps", 5, 9]],)
    yield ([["lose", "cable", 3, 0], ["buy", "cable", 2, 2], ["lose", "cable", 9, 0]],)
    while True:
        yield (_operations(random, random.randint(4, 40), random.randint(1, 3)),)


def _make(random: Random, level: int) -> Problem:
    function, first = random.choice(("settle", "keep_books", "account", "run_warehouse")), random.random() < 0.5
    end = "0" if first else "-1"
    program = Program(
        function,
        {"operations": "a list of [kind, item, count, price]: a string, a string, and two integers, count at least 1"},
        f"""
        Work through the operations. 'buy': so many of the item are bought at that price each; they are a lot, or are
        added to the lot of that item that was bought last, if that has the same price (and something is left of it).
        'sell': so
        many are sold at that price each, from the lots that were bought {"first" if first else "last"}; the profit
        grows
        by price minus what each had cost. If there are not that many of the item, nothing is sold, and the item is
        noted
        as refused. 'lose': the same as selling them at the price 0, but if there are fewer, those that are there are
        lost (of an item that is not there: none). What its price says does not matter.

        The result is a dict: 'profit'; 'value', what all that is still there had cost; 'stock', a dict from each item
        that is there to how many there are; 'refused', the list of items noted, in order, each as often as it was.
        """,
        _SOURCE.replace("FUNCTION", function).replace("END", end),
        _bugs(end),
        _inputs,
        lambda random: (_operations(random, random.randint(3, 7), random.randint(1, 2)),),
    )
    return broken("broken-warehouse", level, random, program)


GENERATOR = Made("broken-warehouse", "debug", "a program that keeps the books of a warehouse", _make)
