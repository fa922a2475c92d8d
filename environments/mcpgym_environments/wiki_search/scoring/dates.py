"""Dates as people write them."""

from __future__ import annotations

import calendar
import re

from mcpgym_environments.wiki_search.scoring.answers import DateAnswer
from mcpgym_environments.wiki_search.scoring.numbers import without_hedges

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan",
            "february feb",
            "march mar",
            "april apr",
            "may",
            "june jun",
            "july jul",
            "august aug",
            "september sep sept",
            "october oct",
            "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTH = r"(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_DAY = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_ERA = r"bce|bc|b\.c\.e\.|b\.c\.?|ad|a\.d\.?|ce|c\.e\.?"
_YEAR = rf"(?P<ad>(?:ad|a\.d\.|ce) )?(?P<year>[0-9]{{1,4}})(?P<era> ?(?:{_ERA}))?"
_WEEKDAY = r"(?:(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)\.?),? )?"
_BEFORE = re.compile(r"^(?:(?:in|on) )?(?:the )?(?:year )?")
_WRITTEN = tuple(
    re.compile(_WEEKDAY + pattern)
    for pattern in (
        rf"(?:the )?{_DAY}(?: of)?[ -]{_MONTH}(?: of)?[ ,-] ?{_YEAR}",
        rf"{_MONTH} (?:the )?{_DAY},? {_YEAR}",
        rf"{_YEAR},? {_MONTH} {_DAY}",
        rf"{_MONTH},?(?: of)? {_YEAR}",
        rf"{_YEAR}",
    )
)
_ISO = re.compile(r"(?P<year>-?[0-9]{4})[-/.](?P<month>[0-9]{1,2})(?:[-/.](?P<day>[0-9]{1,2}))?")
_NUMERIC = re.compile(r"(?P<one>[0-9]{1,2})(?P<mark>[-/.])(?P<two>[0-9]{1,2})(?P=mark)(?P<year>[0-9]{4})")


def date_readings(folded: str) -> tuple[DateAnswer, ...]:
    """Every date that ``folded`` may mean: two for one like 3/5/1876, which is read differently across the Atlantic."""
    folded = _BEFORE.sub("", without_hedges(folded), count=1).strip()
    found = _ISO.fullmatch(folded)
    if found:
        return _valid(int(found["year"]), int(found["month"]), int(found["day"]) if found["day"] else None)
    found = _NUMERIC.fullmatch(folded)
    if found:
        one, two, year = int(found["one"]), int(found["two"]), int(found["year"])
        return tuple(dict.fromkeys(_valid(year, two, one) + _valid(year, one, two)))
    for pattern in _WRITTEN:
        found = pattern.fullmatch(folded)
        if found:
            parts = found.groupdict()
            year = int(parts["year"])
            if "b" in (parts["era"] or ""):
                if parts["ad"]:
                    return ()
                year = -year
            month = _MONTHS[parts["month"]] if parts.get("month") else None
            return _valid(year, month, int(parts["day"]) if parts.get("day") else None)
    return ()


def _valid(year: int, month: int | None, day: int | None) -> tuple[DateAnswer, ...]:
    """The date, where there is such a one."""
    if year == 0 or (month is not None and not 1 <= month <= 12):
        return ()
    if day is not None and month is not None:
        # Years before our era are counted without a year 0: 1 BC is a leap year.
        counted = year if year > 0 else year + 1
        longest = 29 if month == 2 and calendar.isleap(counted) else _DAYS[month - 1]
        if not 1 <= day <= longest:
            return ()
    return (DateAnswer(year, month, day),)
