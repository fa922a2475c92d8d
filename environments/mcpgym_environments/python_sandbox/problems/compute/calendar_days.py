"""How many days of a period satisfy several conditions of the calendar at once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from random import Random

from mcpgym_environments.python_sandbox.problems.compute.working_days import WEEKDAYS
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import ask_whole, listed, mistaken, pick, program, whole

_YEARS = (4, 25, 90, 250, 400)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_CODE = """
from datetime import date, timedelta

day, end = date.fromisoformat(start), date.fromisoformat(end)
count = 0
while day <= end:
    if (
        day.weekday() in weekdays
        and day.day in days
        and day.month not in months
        and (weeks is None or day.isocalendar().week % 2 == weeks)
    ):
        count += 1
    day += timedelta(days=1)
print(count)
"""


def matching(
    start: date,
    end: date,
    weekdays: Collection[int],
    days: Collection[int],
    months: Collection[int],
    weeks: int | None,
) -> list[date]:
    """The days from ``start`` to ``end`` that satisfy everything, month by month."""
    found = []
    for year in range(start.year, end.year + 1):
        for month in range(1, 13):
            if month in months:
                continue
            first = date(year, month, 1)
            length = (date(year + month // 12, month % 12 + 1, 1) - first).days
            weekday = first.weekday()
            for number in days:
                if number <= length and (weekday + number - 1) % 7 in weekdays:
                    day = first.replace(day=number)
                    if start <= day <= end and (weeks is None or day.isocalendar()[1] % 2 == weeks):
                        found.append(day)
    return sorted(found)


def _make(random: Random, level: int) -> Problem:
    years = _YEARS[level - 1]
    while True:
        start = date(random.randint(1600, 2050 - years if years > 100 else 2000), 1, 1)
        start += timedelta(days=random.randrange(365))
        end = start + timedelta(days=random.randint(years * 300, years * 365 + 30))
        weekdays = sorted(random.sample(range(7), random.randint(1, 2 if level < 4 else 3)))
        days = sorted(random.sample(range(1, 32), random.randint(2, 4) if level > 1 else 6))
        months = sorted(random.sample(range(1, 13), random.randint(1, 3))) if level >= 3 else []
        weeks = random.randrange(2) if level >= 4 else None
        found = matching(start, end, weekdays, days, months, weeks)
        if len(found) >= (10, 20, 40, 80, 100)[level - 1]:
            break
    end = found[-1]  # the last day counts: to leave it out is a mistake that shows
    conditions = [
        f"fall on a {listed([WEEKDAYS[day] for day in weekdays], 'or a')}",
        f"are day {listed(days, 'or')} of their month",
    ]
    if months:
        conditions.append(f"do not lie in {listed([_MONTHS[month - 1] for month in months], 'or')}")
    if weeks is not None:
        conditions.append(f"belong to an ISO 8601 week with an {'odd' if weeks else 'even'} number")
    calendar = "Use the (proleptic) Gregorian calendar."
    text = pick(
        random,
        f"How many days from {start} to {end}, both included, {'; '.join(conditions[:-1])}; and {conditions[-1]}?",
        f"Count the days in the period that begins on {start} and ends on {end} (its first and last day count) which "
        f"{listed(conditions)}.",
    )
    values = {
        "start": start.isoformat(), "end": end.isoformat(), "weekdays": weekdays, "days": days, "months": months,
        "weeks": weeks,
    }  # fmt: skip
    return Problem(
        "calendar-days",
        "compute",
        level,
        f"{text} {calendar} {ask_whole(random)}",
        whole(len(found)),
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, "while day <= end", "while day < end"), **values),
        key=repr(values),
    )


CALENDAR_DAYS = Made("calendar-days", "compute", "days of a period that satisfy several conditions at once", _make)
