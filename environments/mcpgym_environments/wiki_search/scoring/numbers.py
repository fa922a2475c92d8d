"""Numbers as people write them: digits with separators, words, scales, fractions, units."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from mcpgym_environments.wiki_search.scoring.units import Unit, find_unit

_SCALES = {
    "hundred": 100,
    "thousand": 10**3,
    "k": 10**3,
    "lakh": 10**5,
    "million": 10**6,
    "millions": 10**6,
    "mn": 10**6,
    "mln": 10**6,
    "mio": 10**6,
    "m": 10**6,
    "crore": 10**7,
    "billion": 10**9,
    "bn": 10**9,
    "b": 10**9,
    "trillion": 10**12,
    "tn": 10**12,
}


def _words(text: str) -> list[str]:
    return text.split()


_SMALL = {
    word: number
    for number, word in enumerate(
        _words(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen"
        )
    )
} | {
    word: 10 * number
    for number, word in enumerate(_words("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
_WORDS = _SMALL.keys() | {"hundred", "thousand", "million", "billion", "trillion", "dozen", "a", "and"}

_NUMBER = (
    r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?(?![0-9,])"
    r"|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]+)?(?![0-9,])"
    r"|[0-9]{1,3}(?: [0-9]{3})+(?:[.,][0-9]+)?(?![0-9]| [0-9])"
    r"|[0-9]{1,3}(?:'[0-9]{3})+(?:\.[0-9]+)?(?![0-9])"
    r"|[0-9]{1,3}(?:\.[0-9]{3}){2,}(?:,[0-9]+)?(?![0-9.])"
    r"|(?:[0-9]+ )?[0-9]+/[0-9]+(?![0-9/])"
    r"|[0-9]+,(?:[0-9]{1,2}|[0-9]{4,})(?![0-9,])"
    r"|[0-9]*\.[0-9]+(?:e[+-]?[0-9]{1,2})?(?![0-9.])"
    r"|[0-9]+(?:e[+-]?[0-9]{1,2})?(?![0-9]|[.,][0-9]))"
)
_POWER_OF_TEN = r"(?: ?[x*×·] ?10\^?\{?(?P<power>-?[0-9]{1,2})\}?)?"
_QUANTITY = re.compile(
    rf"(?P<sign>[+-] ?)?(?P<money>us\$|[$€£])? ?(?P<sign2>[+-])?(?P<number>{_NUMBER}){_POWER_OF_TEN} ?(?P<rest>.*)",
    re.DOTALL,
)
_PART = re.compile(rf"(?P<number>{_NUMBER}) ?(?P<unit>[a-z]+)(?:,? and |, | |$)")
_HEDGE = re.compile(
    r"^(?:(?:about|approximately|approx\.?|around|roughly|circa|ca?\.|nearly exactly|exactly|precisely|~|≈) ?)"
    r"|(?: ?\((?:about|approx\.?|approximately|exactly|roughly|estimated|est\.?)\)"
    r"| (?:approx\.?|approximately|exactly))$"
)
_COMMA_BEHIND_SCALE = re.compile(r"(?:(?<=thousand)|(?<=illion)), ")
_VULGAR = {"½": "1/2", "¼": "1/4", "¾": "3/4", "⅓": "1/3", "⅔": "2/3", "⅕": "1/5", "⅛": "1/8"}


@dataclass(frozen=True, slots=True)
class Written:
    """One reading of a text as a number: ``unit`` as it stands there, ``step`` what its last digit is worth."""

    number: Fraction
    unit: str
    step: Fraction


def open_fractions(text: str) -> str:
    """``text`` with signs such as ½ written out, so that ``1½`` does not fold into 11/2."""
    for sign, written in _VULGAR.items():
        if sign in text:
            text = text.replace(sign, f" {written}")
    return text.strip()


def without_hedges(folded: str) -> str:
    """``folded`` without words such as *about* in front or *(approx.)* behind: they name the same value."""
    for _ in range(2):
        folded = _HEDGE.sub("", folded, count=1).strip()
    return folded


def readings(folded: str) -> Iterator[Written]:
    """Every reading of ``folded`` as one number and a unit, those without a scale (million) first; none for a range."""
    folded = without_hedges(folded)
    for word in ("minus ", "negative "):
        if folded.startswith(word) and not folded[len(word) :].startswith("-"):
            folded = "-" + folded[len(word) :]
    yield from _compound(folded)
    found = _QUANTITY.fullmatch(folded)
    if found is None:
        yield from _in_words(folded)
        return
    if found["sign"] and found["sign2"]:
        return
    plain = _plain(found["number"])
    if plain is None:
        return
    number, step = plain
    if found["power"]:
        power = Fraction(10) ** int(found["power"])
        number, step = number * power, step * power
    if "-" in (found["sign"] or found["sign2"] or ""):
        number = -number
    rest, money = found["rest"].strip(), found["money"] or ""
    if rest[:1] == "-" and rest[1:2].isalpha():
        rest = rest[1:]
    if rest[:1].isdecimal() or rest[:1] == "-" or (money and rest and find_unit(rest)):
        return
    if not money or not rest:
        yield Written(number, rest or money, step)
    for size, behind in _scaled(rest):
        if not (money and behind):
            yield Written(number * size, behind or money, step * size)


def _scaled(rest: str) -> Iterator[tuple[int, str]]:
    """Scales at the start of ``rest`` (several: *hundred thousand*), and what is behind them."""
    size = 1
    while True:
        word, _, behind = rest.partition(" ")
        if word not in _SCALES:
            return
        size *= _SCALES[word]
        if size > 10**18:
            return
        rest = behind.strip().removeprefix("of ")
        yield size, rest


def _plain(digits: str) -> tuple[Fraction, Fraction] | None:
    """The value of digits with separators, and what the last digit is worth."""
    if "/" in digits:
        whole, _, part = digits.rpartition(" ")
        above, below = part.split("/")
        if int(below) == 0:
            return None
        return Fraction(int(whole or 0)) + Fraction(int(above), int(below)), Fraction(0)
    mantissa, _, exponent = digits.partition("e")
    mantissa = mantissa.replace(" ", "").replace("'", "")
    if mantissa.count(".") > 1:
        mantissa = mantissa.replace(".", "").replace(",", ".")
    elif "," in mantissa and "." not in mantissa and len(mantissa.rpartition(",")[2]) != 3:
        mantissa = mantissa.replace(",", ".")
    else:
        mantissa = mantissa.replace(",", "")
    step = Fraction(1, 10 ** len(mantissa.partition(".")[2]))
    power = Fraction(10) ** int(exponent or 0)
    return Fraction(mantissa) * power, step * power


def _compound(folded: str) -> Iterator[Written]:
    """*5 ft 11 in*, *2 hours and 30 minutes*: several units of one dimension, each smaller than the one before."""
    position = 0
    parts: list[tuple[tuple[Fraction, Fraction], Unit, str]] = []
    while position < len(folded):
        found = _PART.match(folded, position)
        if found is None:
            return
        unit, plain = find_unit(found["unit"]), _plain(found["number"])
        if unit is None or plain is None or unit.offset:
            return
        if parts and (unit.dimension != parts[-1][1].dimension or unit.factor >= parts[-1][1].factor):
            return
        parts.append((plain, unit, found["unit"]))
        position = found.end()
    if len(parts) < 2:
        return
    (_, step), last, name = parts[-1]
    total = sum((number * unit.factor for (number, _), unit, _ in parts), Fraction(0))
    yield Written(total / last.factor, name, step)


def _in_words(folded: str) -> Iterator[Written]:
    """*forty-two*, *one hundred and five thousand people*."""
    sign = -1 if folded.startswith("-") else 1
    words = _COMMA_BEHIND_SCALE.sub(" ", folded.removeprefix("-").replace("-", " ")).split()
    count = 0
    while count < len(words) and words[count] in _WORDS:
        count += 1
    while count and words[count - 1] in ("and", "a"):
        count -= 1
    number = _spoken(words[:count])
    if number is not None:
        yield Written(Fraction(sign * number), " ".join(words[count:]), Fraction(1))
    elif folded in ("none", "nil", "nought"):
        yield Written(Fraction(0), "", Fraction(1))


def _spoken(words: list[str]) -> int | None:
    """The value of number words in their usual order; None for others (*five six*)."""
    if not words or words[0] == "and" or words == ["a"]:
        return None
    total, group, last = 0, 0, 10**15
    free = 10**15
    for place, word in enumerate(words):
        if word == "and":
            if group == 0 and total == 0:
                return None
        elif word == "a":
            if place or len(words) < 2 or words[1] not in ("hundred", "thousand", "million", "billion", "dozen"):
                return None
            group = 1
        elif word in _SMALL:
            value = _SMALL[word]
            if value >= free or (value == 0 and len(words) > 1):
                return None
            group += value
            free = 10 if value >= 20 else 0
        elif word == "dozen":
            return 12 * (group or 1) if place == len(words) - 1 and not total else None
        elif word == "hundred":
            if not 0 < group < 100:
                return None
            group, free = group * 100, 100
        else:
            size = _SCALES[word]
            if not group or size >= last:
                return None
            total, group, last, free = total + group * size, 0, size, 10**15
    return total + group
