"""How values are written: numbers with their units, dates, and names in a row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
UNITS: dict[str, tuple[str, ...]] = {
    "": ("{:,}",),
    "year": ("{}",),
    "days": ("{:,} days",),
    "m": ("{:,} m", "{:,} metres"),
    "km": ("{:,} km", "{:,} kilometres"),
    "mm": ("{:,} mm", "{:,} millimetres"),
    "g": ("{:,} g", "{:,} grams"),
    "t": ("{:,} t", "{:,} tonnes"),
    "km²": ("{:,} km²", "{:,} square kilometres"),
    "m³/s": ("{:,} m³/s", "{:,} cubic metres per second"),
}
"""Every way in which a number with a unit is written."""


def day_texts(day: date) -> tuple[str, ...]:
    """Every way in which a date is written."""
    month = MONTHS[day.month - 1]
    return f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}"


def in_a_row(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def with_article(words: str) -> str:
    """``a poet``, ``an architect``; collections and the like are singular too."""
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"
