"""How facts are spoken of within a question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

from mcpgym_environments.folding import fold, name_key
from mcpgym_environments.wiki_search.knowledge import Entity, Quantity, Relation, Value
from mcpgym_environments.wiki_search.questions.splits import wordings
from mcpgym_environments.wiki_search.scoring.answers import (
    Answer,
    DateAnswer,
    EntityAnswer,
    NumberAnswer,
    TextAnswer,
)
from mcpgym_environments.wiki_search.scoring.writing import answer_text, gold_texts

_OF = re.compile(r"the (.+) of \{\}")
_UNCLEAR = frozenset(("the birthday of {}", "the day of {}", "the year of {}"))
"""Phrases that do not say what is earlier than what: a birthday comes every year, a work may have several years."""

_UNITS = {
    "mm": "millimetres",
    "cm": "centimetres",
    "m": "metres",
    "km": "kilometres",
    "m²": "square metres",
    "m2": "square metres",
    "km²": "square kilometres",
    "km2": "square kilometres",
    "sq km": "square kilometres",
    "ha": "hectares",
    "g": "grams",
    "kg": "kilograms",
    "t": "tonnes",
    "kWh": "kilowatt-hours",
    "MWh": "megawatt-hours",
    "m³/s": "cubic metres per second",
    "m3/s": "cubic metres per second",
    "°C": "degrees Celsius",
    "%": "percent",
}


NAME, NESTED, CLOSED = range(3)
"""What a subject is in a question: a bare name, words that end with a name (*the birthplace of X*), or words that end
with a verb (*the region in which X lies*)."""


def fitting(options: Sequence[str], form: int) -> Sequence[str]:
    """Those of several wordings that a subject of this form fits into: no second verb behind one, no long genitive."""
    if form == CLOSED:
        return [option for option in options if option.rstrip("?").endswith("{}")]
    if form == NESTED:
        return [option for option in options if "{}'s" not in option]
    return options


def value_answer(value: Value) -> Answer:
    """``value`` as the answer to a question for it."""
    match value:
        case Entity():
            return EntityAnswer(value.name, value.aliases)
        case Quantity(number, "year") if number.denominator == 1:
            return DateAnswer(int(number))
        case Quantity(number, unit):
            return NumberAnswer(number, unit)
        case date():
            return DateAnswer(value.year, value.month, value.day)
    return TextAnswer(value)


def value_text(value: Value) -> str:
    """``value`` as a reader would write it down."""
    return answer_text(value_answer(value))


@lru_cache(maxsize=4096)
def phrases(relation: Relation, split: str) -> Sequence[str]:
    """The ways to name the value of a relation as a noun (*the birthplace of {}*) that ``split`` may use."""
    return wordings(
        [phrase for phrase in relation.phrases if phrase.startswith("the ") and phrase not in _UNCLEAR], split
    )


@lru_cache(maxsize=4096)
def nouns(relation: Relation, split: str) -> Sequence[str]:
    """What the value of a relation is called beside its owner (*birthplace*, *number of inhabitants*)."""
    for side in (split, "train"):
        found = [match[1] for phrase in phrases(relation, side) if (match := _OF.fullmatch(phrase))]
        if found:
            return found
    return ()


def in_unit(unit: str) -> str:
    """What follows a question for a number in ``unit``: ``, in metres``, or nothing for a bare number or people."""
    return f", in {_UNITS.get(unit, unit)}" if unit not in ("", "people", "inhabitants") else ""


def with_article(noun: str) -> str:
    """``noun`` behind *a* or *an*."""
    spoken_as_you = noun.startswith(("uni", "use", "eu", "one"))
    return f"an {noun}" if noun[0] in "aeiou" and not spoken_as_you else f"a {noun}"


def kind_noun(kind: str) -> str:
    """One thing of a kind, in words."""
    return kind.replace("_", " ")


def sentence(text: str) -> str:
    """``text`` with a capital letter in front."""
    return text[0].upper() + text[1:]


def says(text: str, answer: Answer) -> bool:
    """Whether a question's text has the answer in it, under any of its names, as whole words."""
    folded = fold(text)
    return any(_stands_in(folded, key) for gold in gold_texts(answer) for key in {fold(gold), name_key(gold)} if key)


def _stands_in(folded: str, key: str) -> bool:
    start = folded.find(key)
    while start >= 0:
        end = start + len(key)
        before, behind = folded[start - 1 : start], folded[end : end + 1]
        if not (before.isalnum() and key[0].isalnum()) and not (behind.isalnum() and key[-1].isalnum()):
            return True
        start = folded.find(key, start + 1)
    return False
