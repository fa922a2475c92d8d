"""Names, numbers in words, and sentences that say nothing: what the texts are made of."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from random import Random

_FIRST = [
    a + b for a, b in product(["Ta", "Mi", "Or", "Bel", "Cas", "Du", "Ev", "Hal", "Is", "Jo"], ["vel", "rin", "na"])
]
_FAMILY = [
    a + b + c
    for a, b, c in product(
        ["Mor", "Tan", "Hol", "Brack", "Wes", "Sto", "Gar", "Pel", "Fen", "Lin"],
        ["ni", "be", "do", "wa"],
        ["ck", "rd", "ll", "m", "ss", "th", "nt", "sk", "lk", "rn"],
    )
]
_KINDS_OF_HOUSE = [
    "Hall", "Farm", "Mill", "Barn", "Grange", "Lodge", "Court", "Green", "Hill", "Cross",
    "Ford", "Gate", "Wood", "Field", "Bridge", "Well", "Marsh", "Down", "Rise", "Croft",
]  # fmt: skip

PEOPLE = len(_FIRST) * len(_FAMILY)
"""How many different people there are."""
HOUSES = len(_FAMILY) * len(_KINDS_OF_HOUSE)
"""How many different houses there are."""
TOWNS = [
    a + b for a, b in product(["Ald", "Bre", "Cor", "Den", "Esk", "Far", "Gol", "Hax"], ["ham", "wick", "mouth", "by"])
]
"""The towns."""

PERSON = r"[A-Z][a-z]+ [A-Z][a-z]+"
"""What a person's or a house's name looks like."""
TOWN = r"[A-Z][a-z]+"
"""What a town's name looks like."""


NUMBER = r"[A-Za-z0-9 -]{1,40}?"
"""What a number in digits or words looks like."""


def pattern(form: str, **parts: str) -> re.Pattern[str]:
    """What matches a sentence of this form; each part that stands in braces in it is a group of its name."""
    text = re.escape(form)
    for name, looks in parts.items():
        text = text.replace(rf"\{{{name}\}}", f"(?P<{name}>{looks})")
    return re.compile(text)


def person(number: int) -> str:
    """The person with this number, 0 to ``PEOPLE - 1``."""
    return f"{_FIRST[number % len(_FIRST)]} {_FAMILY[number // len(_FIRST)]}"


def house(number: int) -> str:
    """The house with this number, 0 to ``HOUSES - 1``."""
    return f"{_FAMILY[number % len(_FAMILY)]} {_KINDS_OF_HOUSE[number // len(_FAMILY)]}"


# Numbers.

LARGEST = 99
_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(number: int) -> str:
    """``forty-one``."""
    if number < 20:
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")


def _by(number: int, word: str, size: int) -> str:
    count, rest = divmod(number, size)
    return f"{_ONES[count] if count > 1 else 'a'} {word}" + (f" and {in_words(rest)}" if rest else "")


@cache
def ways() -> tuple[tuple[str, ...], ...]:
    """For each number up to ``LARGEST``, the ways in which it is written."""
    made = []
    for number in range(LARGEST + 1):
        said = [str(number), in_words(number)]
        said += [_by(number, "dozen", 12)] if number >= 12 else []
        said += [_by(number, "score", 20)] if number >= 20 else []
        made.append(tuple(said))
    return tuple(made)


@cache
def numbers() -> dict[str, int]:
    """The number that each way to write one means."""
    return {text: number for number, said in enumerate(ways()) for text in said}


# Sentences that say nothing.

_WHO = [
    "The clerk",
    "An old carter",
    "The ferryman",
    "A stranger",
    "The miller's boy",
    "Nobody",
    "The watch",
    "A widow",
]
_DID = [
    "spoke of the weather", "waited for the post", "mended a wheel", "heard the bells", "lost a glove",
    "watched the river", "slept until noon", "counted the swallows", "quarrelled with a dog", "sang without words",
    "asked the way", "swept the yard",
]  # fmt: skip
_WHEN = [
    "before the frost", "that evening", "when the rain had stopped", "as people do", "at the turn of the tide",
    "for no reason that anybody knew", "while the lamps were lit", "on the road to the hills", "as if it were summer",
    "long after the fair", "in the shade of the wall", "under a grey sky",
]  # fmt: skip


@cache
def filler() -> list[str]:
    """All of them."""
    return [f"{who} {did} {when}." for who, did, when in product(_WHO, _DID, _WHEN)]


@cache
def _filler_length() -> float:
    return sum(map(len, filler())) / len(filler()) + 1


def woven(random: Random, facts: list[str], size: int) -> str:
    """``facts`` in order, each in a line of its own, among sentences that say nothing; about ``size`` characters."""
    if not facts:
        facts = [""]
    left = size - sum(map(len, facts)) - len(facts)
    count = max(0, round(left / _filler_length()))
    chosen = random.choices(filler(), k=count)
    lines = []
    end, paragraphs, draw = 0, len(facts), random.random
    for number, fact in enumerate(facts, 1):
        start, end = end, number * count // paragraphs
        sentences = chosen[start:end]
        if fact:
            sentences.insert(int(draw() * (len(sentences) + 1)), fact)
        lines.append(" ".join(sentences))
    return "\n".join(lines)
