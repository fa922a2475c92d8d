"""What the right answer to a question is: a value of a known type, so that any way to write it can be recognised."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class EntityAnswer:
    """Something with a name; ``aliases`` are other names that are right too."""

    name: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberAnswer:
    """A number in ``unit`` (empty for a bare one); ``tolerance`` is how far off, in that unit, is still right."""

    number: Fraction
    unit: str = ""
    tolerance: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class DateAnswer:
    """A day, a month or a year (what is None is not known); years before our era are negative, without a year 0."""

    year: int
    month: int | None = None
    day: int | None = None


@dataclass(frozen=True, slots=True)
class YesNoAnswer:
    """Yes or no."""

    yes: bool


@dataclass(frozen=True, slots=True)
class TextAnswer:
    """Words that are no name: a motto, a colour; ``aliases`` are other wordings that are right too."""

    text: str
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """Several answers, all of them and nothing else, in any order unless ``ordered``."""

    items: tuple[Answer, ...]
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class AnyAnswer:
    """Each of several answers is right by itself."""

    choices: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Unanswerable:
    """The encyclopedia does not say: the right answer is to say so."""


Answer = EntityAnswer | NumberAnswer | DateAnswer | YesNoAnswer | TextAnswer | ListAnswer | AnyAnswer | Unanswerable

UNANSWERABLE = Unanswerable()

NOT_ANSWERABLE_TEXT = "not answerable"
"""What a policy is told to submit when the encyclopedia does not say."""

LONGEST_ANSWER = 200
"""How many characters a submitted answer may have."""
