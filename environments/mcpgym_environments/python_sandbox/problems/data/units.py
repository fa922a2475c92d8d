"""What parcels weigh altogether, where weights are written in many units."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from mcpgym_environments.python_sandbox.problems.data.tables import COUNTRIES, clear_of_ties, csv_text, rounded
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.writing import file_name, mistaken, pick, program

_ROWS = (15, 80, 300, 550, 900)
_GRAMS = {"kg": Fraction(1_000), "g": Fraction(1), "t": Fraction(10**6), "lb": Fraction("453.59237")}
_GRAMS["oz"] = _GRAMS["lb"] / 16
_CODE = r"""
import csv
import re
from fractions import Fraction

grams = {"kg": Fraction(1000), "g": Fraction(1), "t": Fraction(10**6), "lb": Fraction("453.59237")}
grams["oz"] = grams["lb"] / 16
total = Fraction(0)
with open(path, encoding="utf-8", newline="") as file:
    for row in csv.DictReader(file, delimiter=";"):
        text = row["weight"].strip().lower()
        if row["country"] != country or text in ("", "unknown"):
            continue
        weight = Fraction(0)
        for number, unit in re.findall(r"([0-9][0-9.,]*) ?([a-z]*)", text):
            number = number.replace(",", ".") if decimal_comma else number.replace(",", "")
            weight += Fraction(number) * grams[unit or bare]
        if row["pieces"].strip():
            weight *= int(row["pieces"])
        total += weight
print(f"{float(total / 1000):.3f}")
"""


def _weight(random: Random, level: int, comma: bool) -> tuple[str, Fraction, Fraction]:
    """A weight as it is written, in grams, and in grams where a bare number is mistaken for one in kilograms."""
    units = ["kg", "g", "kg", "g"] if level < 3 else ["kg", "g", "t", "lb", "oz", "lb oz"]
    unit = random.choice([*units, "bare"] if level >= 2 else units)
    if unit == "lb oz":
        pounds, ounces = random.randint(1, 40), random.randint(1, 15)
        size = pounds * _GRAMS["lb"] + ounces * _GRAMS["oz"]
        return f"{pounds} lb {ounces} oz", size, size
    digits, places = random.randint(100, 9_999), 0
    if unit in ("kg", "lb", "oz"):
        places = random.randint(0, 2)
    elif unit == "t":
        digits, places = random.randint(10, 999), 3
    number = Fraction(digits, 10**places)
    whole, part = divmod(digits, 10**places)
    text = f"{whole}{'.' if not comma else ','}{part:0{places}}" if places else str(digits)
    if unit == "bare":
        return text, number * _GRAMS["g"], number * _GRAMS["kg"]
    gap = random.choice(("", " ")) if level >= 2 else " "
    shown = random.choice((unit, unit.upper())) if level >= 4 else unit
    size = number * _GRAMS[unit]
    return f"{text}{gap}{shown}", size, size


def _make(random: Random, level: int) -> Problem:
    comma = level >= 5
    while True:
        countries = random.sample(COUNTRIES, 2 + level)
        country, rows, total, other = countries[0], [], Fraction(0), Fraction(0)
        for number in range(_ROWS[level - 1]):
            where = random.choice(countries)
            text, size, mistake = _weight(random, level, comma)
            if level >= 2 and random.random() < 0.06:
                text, size, mistake = random.choice(("", "unknown")), Fraction(0), Fraction(0)
            pieces = "" if level < 4 or random.random() < 0.5 else str(random.randint(1, 6))
            if where == country:
                total += size * int(pieces or 1)
                other += mistake * int(pieces or 1) if level >= 2 else size if number else 0
            rows.append((f"P{number + 1:05}", where, text, *((pieces,) if level >= 4 else ("",))))
        if total and clear_of_ties(total / 1_000, 3) and round(total) != round(other):
            break
        if level == 1 and rows[0][1] != country:
            continue
    path = file_name(random, "csv", "parcels", "shipments", "freight")
    rules = ["1 lb is 453.59237 g"] if level >= 3 else []
    if level >= 3:
        rules.append("1 oz is a sixteenth of 1 lb")
        rules.append("1 t is 1000 kg")
    if level >= 2:
        rules.append("a number without a unit is in grams")
        rules.append("a weight that is empty or unknown is left out")
    if level >= 4:
        rules.append("the case of a unit does not matter")
        rules.append("a weight is that of one piece, and where pieces is empty there is one")
    if comma:
        rules.append("the decimal sign is a comma")
    stated = f" Here, {'; '.join(rules)}." if rules else ""
    text = pick(
        random,
        f"{path} (columns parcel, country, weight and pieces, with semicolons between) lists parcels whose weights are "
        f"written with their units.{stated} How many kilograms do the parcels for {country} weigh altogether?",
        f"Add up the weights of all rows of {path} with the country {country}. The fields are separated by semicolons: "
        f"parcel, country, weight, pieces.{stated} In kilograms.",
    )
    values = {"path": path, "country": country, "decimal_comma": comma, "bare": "g"}
    if level >= 2:
        wrong = program(_CODE, **{**values, "bare": "kg"})
    else:
        wrong = program(
            mistaken(
                _CODE, 'row["country"] != country or', 'row["country"] != country or row["parcel"] == "P00001" or'
            ),
            **values,
        )
    return Problem(
        "mixed-units",
        "data",
        level,
        f"{text} Submit it rounded to three decimals.",
        rounded(total / 1_000, 3),
        files={path: csv_text(("parcel", "country", "weight", "pieces"), rows, ";").encode()},
        solution=program(_CODE, **values),
        wrong=wrong,
    )


UNITS = Made("mixed-units", "data", "weights in many units, added up exactly", _make)
