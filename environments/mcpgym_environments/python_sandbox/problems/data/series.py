"""Readings of a sensor every few minutes, with gaps: what the complete hours add up to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from fractions import Fraction
from random import Random

from mcpgym_environments.python_sandbox.problems.answers import NumberAnswer
from mcpgym_environments.python_sandbox.problems.data.tables import csv_text
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import file_name, mistaken, pick, program

_HOURS = (5, 20, 48, 90, 160)
_CODE = """
import csv
from datetime import datetime, timezone
from fractions import Fraction

readings = {}
with open(path, encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file):
        time = datetime.fromisoformat(row["time"].replace("Z", "+00:00"))
        if time.tzinfo is not None:
            time = time.astimezone(timezone.utc)
        if row["value"] != "":
            readings[time] = Fraction(row["value"])
        else:
            readings.pop(time, None)
hours = {}
for time, value in readings.items():
    hours.setdefault(time.replace(minute=0), []).append(value)
total = sum(sum(values) for values in hours.values() if len(values) == 60 // every)
print(f"{float(total):.1f}")
"""


def _make(random: Random, level: int) -> Problem:
    every = random.choice((5, 10, 12, 15))
    while True:
        start = datetime(random.randint(2001, 2030), random.randint(1, 12), random.randint(1, 28), random.randrange(24))
        slots = [start + timedelta(minutes=every * number) for number in range(_HOURS[level - 1] * 60 // every)]
        lines: list[tuple[datetime, int | None]] = []
        for slot in slots:
            if random.random() < every / 60 * 0.5:
                continue  # a gap
            value: int | None = random.randint(-200, 3_000)
            if level >= 3 and random.random() < 0.03:
                lines.append((slot, random.randint(-200, 3_000)))  # corrected by the line that comes later
            if level >= 4 and random.random() < 0.02:
                value = None
            lines.append((slot, value))
        if level >= 2:
            lines = random.sample(lines, len(lines))
        kept = dict(lines)
        hours: dict[datetime, list[int]] = {}
        for slot, value in kept.items():
            if value is not None:
                hours.setdefault(slot.replace(minute=0), []).append(value)
        full = 60 // every
        total = sum(sum(values) for values in hours.values() if len(values) == full)
        lax = sum(sum(values) for values in hours.values() if len(values) >= full - 1)
        if total not in (lax, 0) and sum(len(values) == full for values in hours.values()) > level:
            break
    zones = [timezone(timedelta(hours=hours)) for hours in (0, 2, -5, 9)]
    rows = []
    for slot, value in lines:
        if level >= 5:
            shown = slot.replace(tzinfo=UTC).astimezone(random.choice(zones)).isoformat()
        else:
            shown = slot.isoformat(sep="T" if level > 1 else " ", timespec="minutes")
        rows.append((shown, "" if value is None else _tenths(value)))
    path = file_name(random, "csv", "readings", "sensor", "station")
    rules = []
    if level >= 2:
        rules.append("The lines are in no particular order.")
    if level >= 3:
        rules.append("Of several lines for one point in time, the one farthest down in the file holds.")
    if level >= 4:
        rules.append(
            "A line without a value says that the reading failed: then there is none, even where a line above has one."
        )
    if level >= 5:
        rules.append("Times have different UTC offsets; hours are those of UTC.")
    text = pick(
        random,
        f"{path} holds the readings of a sensor (columns time and value), one every {every} minutes from the full hour "
        f"on, but some are missing. An hour (from hh:00 up to, but not including, the next hh:00) is complete when all "
        f"its {full} readings are there. What is the sum of all readings in complete hours?",
        f"A station reports every {every} minutes (hh:00, hh:{every:02}, ...), into the file {path} with the columns "
        f"time and value; there are gaps. Take the clock hours for which all {full} values are there, and add up their "
        "values.",
    )
    values = {"path": path, "every": every}
    return Problem(
        "sensor-gaps",
        "data",
        level,
        " ".join([text, *rules, "Submit it with one decimal."]),
        NumberAnswer(Fraction(total, 10)),
        files={path: csv_text(("time", "value"), rows).encode()},
        solution=program(_CODE, **values),
        wrong=program(mistaken(_CODE, "== 60 // every", ">= 60 // every - 1"), **values),
    )


def _tenths(value: int) -> str:
    return f"{'-' if value < 0 else ''}{abs(value) // 10}.{abs(value) % 10}"


SERIES = Made("sensor-gaps", "data", "the complete hours of a time series with gaps and corrections", _make)
