"""Units of measurement that answers come in, with exact factors (SI Brochure, 9th edition; NIST Handbook 44)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

_FOOT = Fraction(3048, 10000)
_MILE = _FOOT * 5280
_POUND = Fraction(45359237, 100000000)
_GALLON = Fraction(3785411784, 10**12)


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit: ``value × factor + offset`` is the value in its dimension's base unit."""

    dimension: str
    factor: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)


_TABLE: tuple[tuple[str, Fraction | int, str], ...] = (
    ("length", Fraction(1, 1000), "mm millimetre millimetres millimeter millimeters"),
    ("length", Fraction(1, 100), "cm centimetre centimetres centimeter centimeters"),
    ("length", 1, "m metre metres meter meters"),
    ("length", 1000, "km kilometre kilometres kilometer kilometers kms"),
    ("length", _FOOT / 12, "in inch inches"),
    ("length", _FOOT, "ft foot feet"),
    ("length", _FOOT * 3, "yd yard yards"),
    ("length", _MILE, "mi mile miles"),
    ("length", 1852, "nmi nautical_mile nautical_miles"),
    ("length", 149597870700, "au astronomical_unit astronomical_units"),
    ("length", 9460730472580800, "ly light-year light-years light_year light_years"),
    ("area", 1, "m2 square_metre square_metres square_meter square_meters sq_m square_m"),
    ("area", 10**6, "km2 square_kilometre square_kilometres square_kilometer square_kilometers sq_km square_km"),
    ("area", 10**4, "ha hectare hectares"),
    ("area", Fraction(40468564224, 10**7), "acre acres"),
    ("area", _FOOT**2, "ft2 square_foot square_feet sq_ft square_ft"),
    ("area", _MILE**2, "mi2 square_mile square_miles sq_mi square_mi"),
    ("volume", Fraction(1, 10**6), "ml millilitre millilitres milliliter milliliters"),
    ("volume", Fraction(1, 1000), "l litre litres liter liters"),
    ("volume", 1, "m3 cubic_metre cubic_metres cubic_meter cubic_meters cubic_m"),
    ("volume", 10**9, "km3 cubic_kilometre cubic_kilometres cubic_kilometer cubic_kilometers cubic_km"),
    ("volume", _FOOT**3, "ft3 cubic_foot cubic_feet cu_ft"),
    ("volume", _GALLON, "gal gallon gallons us_gallon us_gallons"),
    ("flow", 1, "m3/s cubic_metres_per_second cubic_meters_per_second cubic_metre_per_second"),
    ("flow", _FOOT**3, "ft3/s cubic_feet_per_second cu_ft/s cfs"),
    ("mass", Fraction(1, 10**6), "mg milligram milligrams"),
    ("mass", Fraction(1, 1000), "g gram grams"),
    ("mass", 1, "kg kilogram kilograms kilo kilos kgs"),
    ("mass", 1000, "t tonne tonnes metric_ton metric_tons"),
    ("mass", _POUND, "lb lbs pound pounds"),
    ("mass", _POUND / 16, "oz ounce ounces"),
    ("mass", _POUND * 14, "st stone stones"),
    ("time", 1, "s sec secs second seconds"),
    ("time", 60, "min mins minute minutes"),
    ("time", 3600, "h hr hrs hour hours"),
    ("time", 86400, "d day days"),
    ("time", 604800, "week weeks"),
    ("months", 1, "month months"),
    ("months", 12, "yr yrs year years years_old"),
    ("months", 120, "decade decades"),
    ("months", 1200, "century centuries"),
    ("speed", 1, "m/s metres_per_second meters_per_second"),
    ("speed", Fraction(1000, 3600), "km/h kmh kph kilometres_per_hour kilometers_per_hour km_per_hour"),
    ("speed", _MILE / 3600, "mph miles_per_hour"),
    ("speed", Fraction(1852, 3600), "kn kt knot knots"),
    ("power", 1, "w watt watts"),
    ("power", 1000, "kw kilowatt kilowatts"),
    ("power", 10**6, "mw megawatt megawatts"),
    ("power", 10**9, "gw gigawatt gigawatts"),
    ("energy", 1, "kwh kilowatt-hour kilowatt-hours kilowatt_hours"),
    ("energy", 1000, "mwh megawatt-hour megawatt-hours megawatt_hours"),
    ("energy", 10**6, "gwh gigawatt-hour gigawatt-hours gigawatt_hours"),
    ("energy", 10**9, "twh terawatt-hour terawatt-hours terawatt_hours"),
    ("density", 1, "people/km2 inhabitants/km2 /km2 per_km2 people_per_square_kilometre people_per_square_kilometer"),
    ("percent", 1, "% percent per_cent percentage_points"),
    ("degrees", 1, "° degree degrees"),
    ("people", 1, "people person persons inhabitants inhabitant residents resident"),
    ("US dollars", 1, "$ usd us$ dollar dollars us_dollar us_dollars"),
    ("euros", 1, "€ eur euro euros"),
    ("pounds sterling", 1, "£ gbp"),
)
_KELVIN = Fraction(27315, 100)
_UNITS: dict[str, Unit] = {
    name.replace("_", " "): Unit(dimension, Fraction(factor))
    for dimension, factor, names in _TABLE
    for name in names.split()
}
for _names, _unit in (
    ("k kelvin kelvins", Unit("temperature")),
    ("c °c degrees_celsius degree_celsius celsius degrees_c", Unit("temperature", Fraction(1), _KELVIN)),
    (
        "f °f degrees_fahrenheit degree_fahrenheit fahrenheit degrees_f",
        Unit("temperature", Fraction(5, 9), _KELVIN - Fraction(160, 9)),
    ),
):
    _UNITS |= dict.fromkeys((name.replace("_", " ") for name in _names.split()), _unit)

_POWER = re.compile(r"(?<=[a-z])\^?(?=[23](?:/|$))")
_POWER_WORD = re.compile(r"([a-z]+) (squared|cubed)")
_SPACED_DEGREE = re.compile(r"° (?=[cf]$)")
_SPACED_SLASH = re.compile(r" ?/ ?| per (?=(?:km2|s|h|second|hour)\b)")


def unit_key(text: str) -> str:
    """``text`` (folded already) as units are looked up."""
    text = text.strip().removesuffix(".").replace("sq.", "sq").replace("cu.", "cu")
    text = _POWER_WORD.sub(lambda found: ("square " if found[2] == "squared" else "cubic ") + found[1], text)
    return _SPACED_SLASH.sub("/", _SPACED_DEGREE.sub("°", _POWER.sub("", text)))


def find_unit(text: str) -> Unit | None:
    """The unit that ``text`` (folded already) names, or None."""
    return _UNITS.get(text) or _UNITS.get(unit_key(text))


def same_noun(one: str, other: str) -> bool:
    """Whether two words for what is counted are one word, singular or plural (``bridge``, ``bridges``)."""
    return bool(_forms(one) & _forms(other))


def _forms(noun: str) -> set[str]:
    forms = {noun}
    if noun.endswith("ies"):
        forms.add(noun[:-3] + "y")
    if noun.endswith("es"):
        forms.add(noun[:-2])
    if noun.endswith("s"):
        forms.add(noun[:-1])
    return forms
