"""Which day comes so many working days after another."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from random import Random

from mcpgym_environments.python_sandbox.problems.answers import DateAnswer
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import listed, mistaken, pick, program, shuffled

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SPANS = ((6, 12), (40, 90), (150, 300), (500, 900), (1_200, 2_000))
_CODE = """
from datetime import date, timedelta

closed = set()
for text in sorted(holidays):
    day = date.fromisoformat(text)
    while moved and (day.weekday() in weekend or day in closed):
        day += timedelta(days=1)
    closed.add(day)
day = date.fromisoformat(start)
left = count
while left:
    day += timedelta(days=1)
    if day.weekday() not in weekend and day not in closed:
        left -= 1
print(day)
"""


def closed_days(holidays: Collection[date], weekend: Collection[int], moved: bool) -> set[int]:
    """The ordinals of the days that are off; a moved holiday takes the next day that is neither weekend nor taken."""
    closed: set[int] = set()
    for day in sorted(holidays):
        ordinal = day.toordinal()
        while moved and ((ordinal - 1) % 7 in weekend or ordinal in closed):
            ordinal += 1
        closed.add(ordinal)
    return closed


def working_day(start: date, count: int, weekend: Collection[int], closed: Collection[int]) -> date:
    """The day that is ``count`` working days after ``start``, week by week and then day by day."""
    ordinal = start.toordinal()
    while count:
        ordinal += 1
        if (ordinal - 1) % 7 not in weekend and ordinal not in closed:
            count -= 1
    return date.fromordinal(ordinal)


def _make(random: Random, level: int) -> Problem:
    count = random.randint(*_SPANS[level - 1])
    weekend = random.choice(((5, 6), (4, 5), (6,), (3, 4), (0, 6)) if level >= 2 else ((5, 6),))
    moved = level >= 3
    while True:
        start = date(1990, 1, 1) + timedelta(days=random.randrange(18_000))
        if start.weekday() in weekend:
            continue
        span = count * 7 // (7 - len(weekend))
        holidays = sorted(
            {start + timedelta(days=random.randint(1, span + 3)) for _ in range(random.randint(2, 3 + 3 * level))}
        )
        closed = closed_days(holidays, weekend, moved)
        end, off = (working_day(start, days, weekend, closed) for days in (count, count - 1))
        if closed_days(holidays, weekend, False) != closed or not moved:
            break
    days = listed([WEEKDAYS[day] for day in weekend])
    rest = f"{days} {'is' if len(weekend) == 1 else 'are'} always off"
    written = ", ".join(day.isoformat() for day in (shuffled(random, holidays) if level >= 4 else holidays))
    rule = (
        f" A holiday that falls on {listed([WEEKDAYS[day] for day in weekend], 'or')} or on a day that is already a "
        "holiday is taken instead on the next day that is neither; where several compete, the one with the earlier "
        "date is placed first."
        if moved
        else ""
    )
    thing = pick(random, "An invoice", "A permit", "A parcel", "A contract", "A complaint")
    text = pick(
        random,
        f"{thing} is dated {start} ({WEEKDAYS[start.weekday()]}) and is due {count} working days later; the first "
        f"working day after that date is number 1. {rest}, and so are these holidays: {written}.{rule} On which date "
        "is it due?",
        f"In an office {rest}. Its holidays are {written}.{rule} All other days are working days. Counting starts with "
        f"the first working day after {start} as day 1. Which date is working day {count}?",
    )
    values = {
        "start": start.isoformat(),
        "count": count,
        "weekend": weekend,
        "holidays": [day.isoformat() for day in holidays],
        "moved": moved,
    }
    assert off != end
    return Problem(
        "working-days",
        "compute",
        level,
        f"{text} Submit it as YYYY-MM-DD.",
        DateAnswer(end),
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, "left = count", "left = count - 1"), **values),
        key=repr(values),
    )


WORKING_DAYS = Made("working-days", "compute", "the date so many working days on, with holidays that move", _make)
