"""A program that writes statements of account."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random
from typing import Any

from mcpgym_environments.python_sandbox.problems.debug.making import Bug, Program, broken
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_SOURCE = '''
"""Writes the statement of an account, in cents."""

from datetime import date

FEE = FEE_CENTS
FREE = FREE_BOOKINGS
RATE = RATE_VALUE


def rounded(numerator, denominator):
    """A quotient rounded to the nearest integer, halves away from zero."""
    if numerator < 0:
        return -rounded(-numerator, denominator)
    return (2 * numerator + denominator) // (2 * denominator)


def interest(balances, day):
    """Interest for the days between bookings, on what was owed: balance, from, until."""
    owed = 0
    for balance, start, end in balances:
        if balance < 0:
            owed += -balance * (end - start).days
    return rounded(owed * RATE, 365 * 100)


def FUNCTION(opening, bookings, closing_day):
    end = date.fromisoformat(closing_day)
    ordered = sorted(bookings, key=lambda booking: booking[0])
    balance = opening
    lowest = opening
    monthly = {}
    balances = []
    since = None
    counted = 0
    for day_text, cents in ordered:
        day = date.fromisoformat(day_text)
        if day > end:
            continue
        if since is not None:
            balances.append((balance, since, day))
        since = day
        balance += cents
        counted += 1
        if counted > FREE:
            balance -= FEE
        lowest = min(lowest, balance)
        month = day_text[:7]
        monthly[month] = monthly.get(month, 0) + cents
    if since is not None:
        balances.append((balance, since, end))
    charged = interest(balances, end)
    balance -= charged
    return [balance, lowest, charged, [[month, monthly[month]] for month in sorted(monthly)]]
'''


_BUGS = (
        Bug("(2 * numerator + denominator) // (2 * denominator)", "numerator // denominator", 2),
        Bug("if balance < 0:", "if balance > 0:", 1),
        Bug("owed += -balance * (end - start).days", "owed = -balance * (end - start).days", 3),
        Bug("365 * 100", "360 * 100", 2),
        Bug("sorted(bookings, key=lambda booking: booking[0])", "sorted(bookings)", 3),
        Bug("sorted(bookings, key=lambda booking: booking[0])", "bookings", 1),
        Bug("if day > end:", "if day >= end:", 2),
        Bug("balances.append((balance, since, day))\n        since = day\n        balance += cents\n",
            "balances.append((balance + cents, since, day))\n        since = day\n        balance += cents\n", 3),
        Bug("        since = day\n        balance += cents\n",
            "        since = since or day\n        balance += cents\n", 2),
        Bug("if counted > FREE:", "if counted >= FREE:", 1),
        Bug("        lowest = min(lowest, balance)\n", "        lowest = min(0, balance)\n", 1),
        Bug("lowest = opening\n", "lowest = 0\n", 2),
        Bug("month = day_text[:7]", "month = day_text[:4]", 1),
        Bug("monthly.get(month, 0) + cents", "cents", 1),
        Bug("monthly.get(month, 0) + cents", "monthly[month] + cents", 1),
        Bug("        balances.append((balance, since, end))\n", "        balances.append((opening, since, end))\n", 2),
        Bug("    balance -= charged\n", "", 1),
    )  # fmt: skip


def _bookings(random: Random, count: int) -> tuple[int, list[list[Any]], str]:
    start = date(2019, 1, 1) + random.randrange(2_000) * timedelta(days=1)
    days = [start + random.randint(0, 90) * timedelta(days=1) for _ in range(count)]
    bookings = [[day.isoformat(), random.choice((-1, -1, 1)) * random.randint(1, 90_000)] for day in days]
    closing = start + random.choice((80, 90, 120)) * timedelta(days=1)
    if days and random.random() < 0.4:
        closing = max(days)
    return random.randint(-20_000, 50_000), bookings, closing.isoformat()


def _inputs(random: Random) -> Iterator[Arguments]:
    yield (0, [], "2024-01-31")
    yield (-500, [], "2024-01-31")
    yield (100, [["2024-01-05", -40_100], ["2024-01-05", 300]], "2024-02-29")
    yield (0, [["2023-12-31", -100_000], ["2024-03-01", -5]], "2024-02-29")
    yield (0, [["2024-02-29", -100_000]], "2024-02-29")
    while True:
        yield _bookings(random, random.randint(1, 14))


def _make(random: Random, level: int) -> Problem:
    function = random.choice(("statement", "close_account", "quarter", "settle_account"))
    fee, free, rate = random.randint(5, 99), random.randint(1, 4), random.randint(5, 18)
    source = _SOURCE
    for word, text in (("FUNCTION", function), ("FEE_CENTS", fee), ("FREE_BOOKINGS", free), ("RATE_VALUE", rate)):
        source = source.replace(word, str(text))
    program = Program(
        function,
        {
            "opening": "the balance at first, in cents, an integer",
            "bookings": "a list of [day, cents]: a date such as '2024-05-31', and an integer, negative for what is "
            "paid out",
            "closing_day": "a date like these",
        },
        f"""
        The bookings are made in the order of their days (those of one day in the order of the list); those after the
        closing
        day are left out. Each changes the balance by its cents; from booking number {free + 1} on (counted in the
        order in
        which they are made) each costs a fee of {fee} cents besides, taken from the balance at once. Interest at
        {rate} percent
        a year is charged for each day on which the account is overdrawn: a negative balance after a booking counts
        for the
        days from that booking's day to the day of the next booking, and after the last one to the closing day; a year
        has
        365 days always. (The time before the first booking is free.) All interest is added up exactly, rounded to whole
        cents once, halves up, and taken from the balance at the end.

        The result is [balance at the end, lowest balance, interest, months]: the lowest is that of the opening and of
        the balances after each booking with its fee, before interest; months is a list of [month, cents], such as
        ['2024-05', -1200], for each month with bookings, in order: the sum of their cents, without fees.
        """,
        source,
        _BUGS,
        _inputs,
        lambda random: _bookings(random, random.randint(2, 5)),
    )
    return broken("broken-statement", level, random, program)


GENERATOR = Made("broken-statement", "debug", "a program that writes statements of account", _make)
