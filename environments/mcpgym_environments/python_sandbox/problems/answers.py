"""What the right answer to a problem is, and whether what was submitted is that answer.

One typed match of the whole text. Around it may stand what people put around a result: quotes, ``**``, backticks,
``$``, ``\\boxed{}``, a full stop. Anything else is refused: prose, a second number, a unit that was not asked for, an
expression where a number is asked. Nothing here passes through a float, evaluates what it reads, or takes long on any
text.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import NoReturn

from mcpgym_environments.folding import text_key
from mcpgym_environments.python_sandbox.problems.numbers import read_number
from mcpgym_environments.python_sandbox.problems.surds import canonical, read_surd, surd_text

LONGEST_ANSWER = 2_000
"""How many characters a submitted answer may have."""


@dataclass(frozen=True, slots=True)
class NumberAnswer:
    """A number, exact unless a ``tolerance`` (absolute) is given; only the word ``unit`` may stand behind it."""

    value: Fraction
    tolerance: Fraction = Fraction(0)
    unit: str = ""


@dataclass(frozen=True, slots=True)
class SurdAnswer:
    """A sum of square roots, each (coefficient, radicand): ``3 + 2*sqrt(5)`` is ((3, 1), (2, 5)); exact."""

    terms: tuple[tuple[Fraction, int], ...]


@dataclass(frozen=True, slots=True)
class DateAnswer:
    """A day of the Gregorian calendar, to be written YYYY-MM-DD."""

    day: date


@dataclass(frozen=True, slots=True)
class WordAnswer:
    """A word, a name, a code; with ``exact`` the case and the accents of its letters matter."""

    text: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """Several answers, all of them and nothing else; in any order (a set) unless ``ordered``."""

    items: tuple[Answer, ...]
    ordered: bool = True


Answer = NumberAnswer | SurdAnswer | DateAnswer | WordAnswer | ListAnswer


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right, and a sentence that says why (without the right answer)."""

    correct: bool
    reason: str


RIGHT = Verdict(True, "the right answer")

_PAIRS = (
    ('"', '"'),
    ("'", "'"),
    ("“", "”"),
    ("`", "`"),
    ("**", "**"),
    ("*", "*"),
    ("$$", "$$"),
    ("$", "$"),
    ("\\(", "\\)"),
    ("\\boxed{", "}"),
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_BETWEEN = re.compile(r"\s*[,;\n]\s*")
_EMPTY = frozenset(("", "none", "empty", "set()"))


def judge(answer: Answer, submitted: str) -> Verdict:
    """Whether the whole of ``submitted`` is ``answer``, by the rules of this module alone."""
    if len(submitted) > 5 * LONGEST_ANSWER or len(text := submitted.strip()) > LONGEST_ANSWER:
        return Verdict(False, f"longer than {LONGEST_ANSWER} characters")
    if not text:
        return Verdict(False, "nothing was submitted")
    return _judge(answer, text)


def answer_text(answer: Answer) -> str:
    """``answer`` as one would submit it; :func:`judge` accepts it."""
    match answer:
        case NumberAnswer(value, _, unit):
            return f"{_decimal(value) or value} {unit}".strip()
        case SurdAnswer(terms):
            return surd_text(terms)
        case DateAnswer(day):
            return day.isoformat()
        case WordAnswer(text):
            return text
        case ListAnswer(items):
            return ", ".join(answer_text(item) for item in items) or "none"


def _decimal(value: Fraction) -> str:
    """``value`` as a decimal with at most six places; nothing where it is none."""
    for places in range(7):
        if 10**places % value.denominator == 0:
            digits = f"{abs(value.numerator) * (10**places // value.denominator):0{places + 1}}"
            sign = "-" if value < 0 else ""
            return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)
    return ""


def unwrapped(text: str) -> str:
    """``text`` without what may stand around a result: quotes, emphasis, signs of mathematics, a full stop."""
    text = text.strip()
    for _ in range(4):
        before = text
        if text.endswith(".") and not text.endswith(".."):
            text = text[:-1].rstrip()
        for opening, closing in _PAIRS:
            if text.startswith(opening) and text.endswith(closing) and len(text) > len(opening) + len(closing):
                inner = text[len(opening) : -len(closing)]
                if opening not in inner and inner.strip():
                    text = inner.strip()
                    break
        if text == before:
            break
    return text


def _judge(answer: Answer, text: str) -> Verdict:
    match answer:
        case NumberAnswer():
            return _judge_number(answer, unwrapped(text))
        case SurdAnswer(terms):
            said = read_surd(unwrapped(text))
            if said is None:
                return Verdict(False, "not a sum of square roots in the form asked for")
            return RIGHT if said == canonical(terms) else Verdict(False, "another number")
        case DateAnswer(day):
            return _judge_date(day, unwrapped(text))
        case WordAnswer(word, exact):
            right = _plain(word) in (_plain(text), _plain(unwrapped(text))) if exact else _same_words(word, text)
            return RIGHT if right else Verdict(False, "another word")
        case ListAnswer(items, ordered):
            return _judge_list(items, ordered, text)


def _judge_number(answer: NumberAnswer, text: str) -> Verdict:
    if answer.unit and text.casefold().endswith(answer.unit.casefold()):
        text = text[: -len(answer.unit)].rstrip()
    number = read_number(text)
    if number is None:
        return Verdict(False, "not one number" + (f" in {answer.unit}" if answer.unit else ""))
    return RIGHT if abs(number - answer.value) <= answer.tolerance else Verdict(False, "another number")


def _judge_date(day: date, text: str) -> Verdict:
    try:
        said = date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        said = None
    if said is None:
        return Verdict(False, "not a date in the form YYYY-MM-DD")
    return RIGHT if said == day else Verdict(False, "another date")


def _judge_list(items: tuple[Answer, ...], ordered: bool, text: str) -> Verdict:
    pieces = _pieces(text, numbers=all(isinstance(item, NumberAnswer) for item in items))
    if pieces is None:
        return Verdict(False, "not a list")
    if len(pieces) != len(items):
        return Verdict(False, "a list of another length")
    left = list(items)
    for piece in pieces:
        places = range(1) if ordered else range(len(left))
        fits = next((place for place in places if piece and _judge(left[place], piece).correct), None)
        if fits is None:
            return Verdict(False, "another list" + (", or in another order" if ordered else ""))
        del left[fits]
    return RIGHT


def _pieces(text: str, numbers: bool) -> list[str] | None:
    """The items of a list: JSON, or with commas, semicolons or lines between them; numbers also with spaces only."""
    text = unwrapped(text)
    if text.startswith("["):
        try:
            values = json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
            return list(values) if all(isinstance(value, str) for value in values) else None
        except (ValueError, RecursionError):
            pass
    if _BRACKETS.get(text[:1]) == text[-1:]:
        text = text[1:-1].strip()
    if text.casefold() in _EMPTY:
        return []
    text = text.rstrip(",; ")
    if numbers and not any(mark in text for mark in ",;\n"):
        return text.split()
    return _BETWEEN.split(text)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _same_words(one: str, other: str) -> bool:
    return text_key(one) in (text_key(other), text_key(unwrapped(other)))
