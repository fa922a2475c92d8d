"""Dates: working days, holidays, months that end early, payments that move."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from random import Random

from mcpgym_environments.python_sandbox.problems.function.making import Wanted, written
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ONE = timedelta(days=1)

_ADD = """
from datetime import date, timedelta

def {function}({parameters}):
    holidays = set({holidays})
    day = date.fromisoformat(day)
    step = timedelta(days=1 if count > 0 else -1)
    left = abs(count)
    {first}
    while left:
        day += step
        if day.weekday() not in {free} and day.isoformat() not in holidays:
            left -= 1
    return day.isoformat()
"""

_NTH = """
from datetime import date, timedelta

def {function}(first, last, holidays):
    found = []
    day, end = date.fromisoformat(first), date.fromisoformat(last)
    while day <= end:
        if day.weekday() == {weekday} and {in_month}:
            moved = day
            while moved.weekday() in {free} or moved.isoformat() in holidays:
                moved += timedelta(days={direction})
            found.append(moved.isoformat())
        day += timedelta(days=1)
    return found
"""

_PAYMENTS = """
import calendar
from datetime import date, timedelta

def {function}(start, months, count, holidays):
    begin = date.fromisoformat(start)

    def works(day):
        return day.weekday() not in {free} and day.isoformat() not in holidays

    found = []
    for index in range(1, count + 1):
        month = begin.month - 1 + months * index
        year, month = begin.year + month // 12, month % 12 + 1
        length = calendar.monthrange(year, month)[1]
        if {end_rule}:
            day = date(year, month, length)
        else:
            day = date(year, month, min(begin.day, length))
        moved = day
        while not works(moved):
            moved += timedelta(days={direction})
        if {modified} and moved.month != day.month:
            moved = day
            while not works(moved):
                moved -= timedelta(days={direction})
        found.append(moved.isoformat())
    return found
"""


def _free_days(random: Random) -> tuple[int, ...]:
    first = random.randrange(7)
    return random.choice(((first,), tuple(sorted((first, (first + 1) % 7))), tuple(sorted((first, (first + 3) % 7)))))


def _day(random: Random) -> date:
    return date(2000, 1, 1) + random.randrange(14_000) * _ONE


def _holidays(random: Random, around: date, count: int, span: int) -> list[str]:
    return sorted({(around + random.randint(-span, span) * _ONE).isoformat() for _ in range(count)})


def _adding(random: Random, level: int) -> Problem:
    free = _free_days(random)
    closing = level == 2
    start_moves = random.random() < 0.5
    function = random.choice(("add_days", "due_date", "deadline", "working_day"))

    def works(day: date, holidays: list[str]) -> bool:
        return day.weekday() not in free and day.isoformat() not in holidays

    def reference(day: str, count: int, holidays: list[str] | None = None) -> str:
        here, off = date.fromisoformat(day), holidays or []
        if start_moves or count == 0:
            while not works(here, off):
                here += _ONE
        for _ in range(abs(count)):
            here += _ONE if count > 0 else -_ONE
            while not works(here, off):
                here += _ONE if count > 0 else -_ONE
        return here.isoformat()

    def arguments(random: Random, most: int) -> Arguments:
        day = _day(random)
        count = random.randint(-most, most)
        return (day.isoformat(), count, *([_holidays(random, day, random.randint(0, 9), 12)] if closing else []))

    def inputs(random: Random) -> Iterator[Arguments]:
        for text, count in (
            ("2024-02-28", 1),
            ("2023-02-28", 1),
            ("2024-12-31", 0),
            ("2024-03-01", -1),
            ("2000-01-01", 5),
        ):
            yield (text, count, *([[text]] if closing else []))
        for offset in range(7):
            yield (
                (date(2021, 5, 3) + offset * _ONE).isoformat(),
                random.choice((0, 3, -3)),
                *([[]] if closing else []),
            )
        while True:
            yield arguments(random, random.choice((3, 30, 200)))

    names = " and ".join(_DAYS[day] for day in free)
    parameters = {"day": "a date as a string, such as '2024-05-31'", "count": "an integer, which may be negative or 0"}
    if closing:
        parameters["holidays"] = "a list of dates, strings, on which nobody works"
    begins = (
        "If the given day is not a working day, begin at the next working day after it."
        if start_moves
        else "Begin at the given day, even if it is no working day; but if count is 0 and it is none, the result is "
        "the next working day after it."
    )
    wanted = Wanted(
        function,
        parameters,
        f"All days of the week but {names} are working days{', unless they are holidays' * closing}. {begins} "
        "From there go on by count working days: forward, or backward where count is negative. Only the working days "
        "on the way are counted, not the day where you begin.",
        "the day that is reached, a string like the given one.",
        reference,
        inputs,
        [arguments(random, 6), arguments(random, 15)],
        _ADD.format(
            function=function, parameters=", ".join(parameters), holidays="holidays" if closing else "()", free=free,
            first=("if True" if start_moves else "if count == 0")
            + f":\n        while day.weekday() in {free} or day.isoformat() in holidays:\n            day += "
            f"timedelta(days=1)",
        ),
        ("days=1 if count > 0 else -1", "days=1"),
    )  # fmt: skip
    return written("date-rules", level, wanted)


def _recurring(random: Random, level: int) -> Problem:
    free = _free_days(random)
    weekday, direction = random.randrange(7), random.choice((1, -1))
    nth = random.choice((1, 2, 3, 4, -1, -2))
    function = random.choice(("meetings", "recurring", "appointments", "dates_between"))

    def reference(first: str, last: str, holidays: list[str]) -> list[str]:
        begin, end = date.fromisoformat(first), date.fromisoformat(last)
        found = []
        year, month = begin.year, begin.month
        while (year, month) <= (end.year, end.month):
            following = date(year + month // 12, month % 12 + 1, 1)
            days = [date(year, month, 1) + n * _ONE for n in range((following - date(year, month, 1)).days)]
            day = [day for day in days if day.weekday() == weekday][nth - 1 if nth > 0 else nth]
            if begin <= day <= end:
                while day.weekday() in free or day.isoformat() in holidays:
                    day += direction * _ONE
                found.append(day.isoformat())
            year, month = following.year, following.month
        return found

    def arguments(random: Random, months: int) -> Arguments:
        first = _day(random)
        last = first + random.randint(0, 31 * months) * _ONE
        plain = reference(first.isoformat(), last.isoformat(), [])
        return (first.isoformat(), last.isoformat(), sorted(random.sample(plain, len(plain) // 2)))

    def inputs(random: Random) -> Iterator[Arguments]:
        yield ("2024-02-01", "2024-02-29", [])
        yield ("2023-12-01", "2024-01-31", ["2023-12-25", "2024-01-01"])
        yield ("2024-06-30", "2024-06-01", [])
        yield ("2022-01-01", "2022-12-31", [])
        exact = reference("2019-01-01", "2019-02-28", [])
        yield (exact[0], exact[0], [])
        while True:
            yield arguments(random, random.randint(1, 14))

    which = {1: "first", 2: "second", 3: "third", 4: "fourth", -1: "last", -2: "last but one"}[nth]
    names = " and ".join(_DAYS[day] for day in free)
    wanted = Wanted(
        function,
        {"first": "a date, a string such as '2024-05-31'", "last": "a date like it; it may be before first",
         "holidays": "a list of dates like these"},
        f"A meeting is planned for the {which} {_DAYS[weekday]} of every month. Take those that are planned for a day "
        f"from "
        f"first to last, both included. Nobody meets on a {names.replace(' and ', ' or a ')} or on a holiday: such a "
        f"meeting "
        f"is moved {'forward (later)' if direction > 0 else 'backward (earlier)'}, day by day, to the nearest day on "
        f"which "
        f"one can meet, even if that lies beyond first or last.",
        "the days of the meetings, in the order in which they are planned, a list of strings like the given dates (two "
        "meetings may fall on one day).",
        reference,
        inputs,
        [arguments(random, 3), arguments(random, 6)],
        _NTH.format(
            function=function, weekday=weekday, free=free, direction=direction,
            in_month=f"(day.day - 1) // 7 == {nth - 1}" if nth > 0
            else f"(day + timedelta(days={-7 * nth})).month != day.month"
            + (" and (day + timedelta(days=7)).month == day.month" if nth == -2 else ""),
        ),
        ("or moved.isoformat() in holidays", ""),
    )  # fmt: skip
    return written("date-rules", level, wanted)


def _paying(random: Random, level: int) -> Problem:
    free = _free_days(random)
    direction = random.choice((1, -1))
    modified = level == 5 or random.random() < 0.5
    month_end = level == 5
    function = random.choice(("payments", "instalments", "due_dates", "pay_days"))

    def reference(start: str, months: int, count: int, holidays: list[str]) -> list[str]:
        begin = date.fromisoformat(start)
        from_end = month_end and (begin + _ONE).day == 1
        found = []
        for index in range(1, count + 1):
            total = begin.year * 12 + begin.month - 1 + months * index
            length = (date((total + 1) // 12, (total + 1) % 12 + 1, 1) - _ONE).day
            day = date(total // 12, total % 12 + 1, length if from_end else min(begin.day, length))
            for way in (direction, -direction):
                moved = day
                while moved.weekday() in free or moved.isoformat() in holidays:
                    moved += way * _ONE
                if moved.month == day.month or not modified:
                    break
            found.append(moved.isoformat())
        return found

    def arguments(random: Random, count: int) -> Arguments:
        begin = _day(random)
        if random.random() < 0.5:
            begin = date(begin.year, begin.month, random.choice((1, 28))) - random.randint(0, 2) * _ONE
        months = random.randint(1, 6)
        plain = reference(begin.isoformat(), months, count, [])
        return (begin.isoformat(), months, count, sorted(random.sample(plain, len(plain) // 3)))

    def inputs(random: Random) -> Iterator[Arguments]:
        yield ("2024-01-31", 1, 6, [])
        yield ("2023-02-28", 1, 8, ["2023-04-28", "2023-05-31"])
        yield ("2023-11-30", 3, 5, [])
        yield ("2024-02-29", 12, 5, [])
        yield ("2024-05-15", 1, 0, [])
        yield ("2022-12-31", 2, 7, ["2023-02-28", "2023-02-27", "2023-03-01"])
        yield ("2024-01-01", 1, 12, ["2024-03-01", "2024-07-01"])
        while True:
            yield arguments(random, random.randint(3, 14))

    names = " or a ".join(_DAYS[day] for day in free)
    way = ("next (later)", "last (earlier)") if direction > 0 else ("last (earlier)", "next (later)")
    lines = [
        "Payments are due every so many months after a first day: payment number k (from 1 to count) is due k * "
        "months months "
        "after start, on the same day of the month, or on the last day of that month if the month is too short. The "
        "days of "
        "later payments are not affected by an earlier short month."
    ]
    if month_end:
        lines.append("If start is the last day of its month, every payment is due on the last day of its month.")
    lines.append(
        f"No payment is made on a {names} or on a holiday: it is moved to the {way[0]} day on which one can pay."
    )
    if modified:
        lines.append(f"But if that day lies in another month, it is moved to the {way[1]} such day instead, counted "
                     f"from the day on which it is due, whatever month that lies in.")  # fmt: skip
    wanted = Wanted(
        function,
        {"start": "a date, a string such as '2024-05-31'",
         "months": "how many months lie between two payments (1 or more)",
         "count": "how many payments there are (0 or more)", "holidays": "a list of dates like start"},
        "\n".join(lines),
        "the days on which the payments are made, in order of their numbers, a list of strings like start.",
        reference,
        inputs,
        [arguments(random, 3), arguments(random, 5)],
        _PAYMENTS.format(
            function=function, free=free, direction=direction, modified=modified,
            end_rule="(begin + timedelta(days=1)).month != begin.month" if month_end else "False",
        ),
        (f"moved = day\n        while not works(moved):\n            moved += timedelta(days={direction})",
         f"moved = day\n        while not works(moved):\n            moved += timedelta(days={-direction})"),
    )  # fmt: skip
    return written("date-rules", level, wanted)


def _make(random: Random, level: int) -> Problem:
    return _adding(random, level) if level <= 2 else _recurring(random, level) if level == 3 else _paying(random, level)


GENERATOR = Made("date-rules", "function", "dates with working days, holidays and months of any length", _make)
