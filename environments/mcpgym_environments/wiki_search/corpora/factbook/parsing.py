"""Values out of the Factbook's phrases: strictly, so that what is not said plainly is not taken for a fact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from fractions import Fraction

_SCALES = {"": 1, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_NUMBER = r"(?P<sign>[-−]?)\$?(?P<digits>\d{1,3}(?:,\d{3})+|\d+)(?P<decimals>\.\d+)?"
_FIGURE = re.compile(
    rf"{_NUMBER}(?: (?P<scale>thousand|million|billion|trillion))?(?P<unit>[^();]*?)"
    r"(?: \((?:\d{4}(?:-\d{2,4}|/\d{2,4})?(?: est\.)?|est\.|landlocked)\))?"
)
_PEAK = re.compile(rf"(?P<name>[^();,\d]+?)(?: \([^()]*\))? {_NUMBER} m")
_BORDER = re.compile(r"(?P<name>[^;,()\d]+?) (?P<length>[\d,]+(?:\.\d+)?) km")
_MONTHS = {
    name: number
    for number, name in enumerate(
        (
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ),
        1,
    )
}
_DAY = re.compile(r"(\d{1,2}) (" + "|".join(_MONTHS) + r") (\d{4}) \(from (?:the )?([^();]+)\)")
_TITLE = re.compile(r"[\"“”]([^\"“”]+)[\"“”](?: \([^()]*\))?")
_CURRENCY = re.compile(r"([^()]+) \(([A-Z]{3})\) per US dollar -?")
_CAPITAL = re.compile(r"([^();,\d]+?)(?: \([^()]*\))?")


def figure(text: str, unit: str) -> Fraction | None:
    """The number of ``12.5 million sq km (2020 est.)``; None unless its unit matches the pattern ``unit`` and nothing
    else is said."""
    found = _FIGURE.fullmatch(text)
    if found is None or re.fullmatch(unit, (found["unit"] or "").strip()) is None:
        return None
    return _number(found) * _SCALES[found["scale"] or ""]


def peak(text: str) -> tuple[str, Fraction] | None:
    """The name and height in metres of ``Tahat 2,908 m``; None for a place without a name."""
    found = _PEAK.fullmatch(text)
    if found is None or re.search(r"\b(unnamed|unknown|location|near|on|elevation)\b", found["name"]):
        return None
    return found["name"], _number(found)


def day_of_independence(text: str) -> tuple[date, str] | None:
    """The day, and from whom, of ``5 July 1962 (from France)``; None where there is more than one."""
    found = _DAY.fullmatch(text)
    if found is None:
        return None
    return date(int(found[3]), _MONTHS[found[2]], int(found[1])), found[4]


def quoted_title(text: str) -> str | None:
    """The name of ``"Kassaman" (We Pledge)``."""
    found = _TITLE.fullmatch(text)
    return found[1] if found else None


def currency_code(text: str) -> str | None:
    """The code of ``Algerian dinars (DZD) per US dollar -``."""
    found = _CURRENCY.fullmatch(text)
    return found[2] if found else None


def single_name(text: str) -> str | None:
    """A name with nothing beside it but brackets: not ``Porto-Novo (constitutional capital); Cotonou``."""
    found = _CAPITAL.fullmatch(text)
    return found[1] if found and found[1].casefold() != "none" else None


def code(text: str) -> str | None:
    """A single code: a country's internet domain, or the prefix of its aircraft."""
    return text if re.fullmatch(r"\.?[A-Z0-9-]{1,6}|\.[a-z]{2,4}", text) else None


def border_parts(text: str) -> list[tuple[str, Fraction]] | None:
    """The neighbours of ``Libya 989 km; Mali 1,359 km`` with their lengths; None where one is not said so."""
    parts: list[tuple[str, Fraction]] = []
    for part in filter(None, (part.strip() for part in re.sub(r" \([^()]*\)", "", text).split(";"))):
        found = _BORDER.fullmatch(part)
        if found is None:
            return None
        parts.append((found["name"].removeprefix("the "), Fraction(found["length"].replace(",", ""))))
    return parts


def names_in(text: str) -> Iterator[str]:
    """Everything in ``text`` that may be the name of a country."""
    for found in re.finditer(r"[A-Z][\w'.-]*(?:(?: (?:and|of|the|da))* [A-Z][\w'.-]*)*", text):
        yield found[0].rstrip(".")
        yield found[0]


def _number(found: re.Match[str]) -> Fraction:
    number = Fraction(found["digits"].replace(",", "") + (found["decimals"] or ""))
    return -number if found["sign"] else number
