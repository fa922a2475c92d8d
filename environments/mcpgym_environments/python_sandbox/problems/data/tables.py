"""What the makers of data share: names of things, CSV, and numbers that no way of rounding makes ambiguous."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from fractions import Fraction

from mcpgym_environments.python_sandbox.problems.answers import NumberAnswer

FIRST = (
    "Ada", "Bela", "Carla", "Dario", "Edith", "Femi", "Grete", "Hugo", "Ines", "Jonas", "Kofi", "Lena", "Mira", "Nils",
    "Olga", "Pia", "Quentin", "Rosa", "Sven", "Tara", "Ugo", "Vera", "Wim", "Yuki", "Zoe",
)  # fmt: skip
LAST = (
    "Abel", "Brandt", "Costa", "Diaz", "Eriksen", "Fontaine", "Garcia", "Holm", "Ivanov", "Jansen", "Keller", "Lund",
    "Marek", "Novak", "Okafor", "Petrov", "Quist", "Rossi", "Sato", "Tanaka", "Urban", "Vega", "Weber", "Young",
    "Zimmer",
)  # fmt: skip
REGIONS = ("north", "south", "east", "west", "centre", "coast", "hills", "islands")
PRODUCTS = ("lamp", "desk", "chair", "shelf", "clock", "rug", "mirror", "stool", "vase", "basket", "blanket", "candle")
COUNTRIES = ("Austria", "Brazil", "Chile", "Denmark", "Egypt", "Finland", "Ghana", "Hungary", "Italy", "Japan")


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]], delimiter: str = ",") -> str:
    """A CSV file with a header, quoted where it must be."""
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def cents(amount: int) -> str:
    """An amount in hundredths as a decimal: 1234 is 12.34."""
    return f"{amount // 100}.{amount % 100:02}"


def clear_of_ties(value: Fraction, places: int) -> bool:
    """Whether ``value`` rounds to ``places`` decimals in one way only, whatever happens to halves and in floats."""
    part = abs(value) * 10**places % 1
    return bool(abs(part - Fraction(1, 2)) > Fraction(1, 1_000))


def rounded(value: Fraction, places: int) -> NumberAnswer:
    """``value`` rounded to ``places`` decimals, as an answer; it must be :func:`clear_of_ties`."""
    size = 10**places
    return NumberAnswer(Fraction(round(value * size), size))
