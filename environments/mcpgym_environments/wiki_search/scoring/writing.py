"""Answers as text, and as JSON."""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from mcpgym_environments.wiki_search.scoring.answers import (
    NOT_ANSWERABLE_TEXT,
    UNANSWERABLE,
    Answer,
    AnyAnswer,
    DateAnswer,
    EntityAnswer,
    ListAnswer,
    NumberAnswer,
    TextAnswer,
    Unanswerable,
    YesNoAnswer,
)


def number_text(number: Fraction) -> str:
    """``number`` in digits, with commas between thousands: exact where it ends, to ten places where it does not."""
    if number.denominator == 1:
        return f"{number.numerator:,}"
    below = number.denominator
    for prime in (2, 5):
        while below % prime == 0:
            below //= prime
    if below != 1:
        return f"{float(number):,.10g}"
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    sign, digits = "-" if number < 0 else "", str(abs(number.numerator) * 10**places // number.denominator)
    digits = digits.rjust(places + 1, "0")
    return f"{sign}{int(digits[:-places]):,}.{digits[-places:]}"


def date_text(date: DateAnswer) -> str:
    """``date`` as ``3 May 1876``."""
    year = f"{date.year}" if date.year > 0 else f"{-date.year} BC"
    if date.month is None:
        return year
    month = calendar.month_name[date.month]
    return f"{month} {year}" if date.day is None else f"{date.day} {month} {year}"


def answer_text(answer: Answer) -> str:
    """``answer`` as one would submit it; :func:`judge` accepts it."""
    match answer:
        case EntityAnswer(name):
            return name
        case NumberAnswer(number, unit):
            return (
                f"{number_text(number)} {unit}".strip() if unit not in ("$", "€", "£") else unit + number_text(number)
            )
        case DateAnswer():
            return date_text(answer)
        case YesNoAnswer(yes):
            return "yes" if yes else "no"
        case TextAnswer(text):
            return text
        case ListAnswer(items):
            return "; ".join(answer_text(item) for item in items)
        case AnyAnswer(choices):
            return answer_text(choices[0])
        case Unanswerable():
            return NOT_ANSWERABLE_TEXT


def gold_texts(answer: Answer) -> tuple[str, ...]:
    """Every text that counts as the reference for exact match and F1."""
    match answer:
        case EntityAnswer(name, aliases) | TextAnswer(name, aliases):
            return (name, *aliases)
        case NumberAnswer(number, unit) if unit:
            return (answer_text(answer), number_text(number))
        case AnyAnswer(choices):
            return tuple(text for choice in choices for text in gold_texts(choice))
    return (answer_text(answer),)


def answer_to_json(answer: Answer) -> dict[str, Any]:
    """``answer`` as JSON values; :func:`answer_from_json` is the way back."""
    match answer:
        case EntityAnswer(name, aliases):
            return {"type": "entity", "name": name, "aliases": list(aliases)}
        case NumberAnswer(number, unit, tolerance):
            return {"type": "number", "number": str(number), "unit": unit, "tolerance": str(tolerance)}
        case DateAnswer(year, month, day):
            return {"type": "date", "year": year, "month": month, "day": day}
        case YesNoAnswer(yes):
            return {"type": "yes or no", "yes": yes}
        case TextAnswer(text, aliases):
            return {"type": "text", "text": text, "aliases": list(aliases)}
        case ListAnswer(items, ordered):
            return {"type": "list", "items": [answer_to_json(item) for item in items], "ordered": ordered}
        case AnyAnswer(choices):
            return {"type": "any", "choices": [answer_to_json(choice) for choice in choices]}
        case Unanswerable():
            return {"type": "not answerable"}


def answer_from_json(value: Mapping[str, Any]) -> Answer:
    """The answer that :func:`answer_to_json` wrote.

    Raises:
        ValueError: a type that there is not.
        KeyError: a part is missing.
    """
    match value["type"]:
        case "entity":
            return EntityAnswer(value["name"], tuple(value["aliases"]))
        case "number":
            return NumberAnswer(Fraction(value["number"]), value["unit"], Fraction(value["tolerance"]))
        case "date":
            return DateAnswer(value["year"], value["month"], value["day"])
        case "yes or no":
            return YesNoAnswer(value["yes"])
        case "text":
            return TextAnswer(value["text"], tuple(value["aliases"]))
        case "list":
            return ListAnswer(tuple(answer_from_json(item) for item in value["items"]), value["ordered"])
        case "any":
            return AnyAnswer(tuple(answer_from_json(choice) for choice in value["choices"]))
        case "not answerable":
            return UNANSWERABLE
        case kind:
            raise ValueError(f"no answer is of type {kind!r}")
