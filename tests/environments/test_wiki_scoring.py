"""Typed scoring: a table of answers as they are submitted, with the right verdict each."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpgym_environments.wiki_search.scoring import (
    UNANSWERABLE,
    Answer,
    AnyAnswer,
    DateAnswer,
    EntityAnswer,
    ListAnswer,
    NumberAnswer,
    TextAnswer,
    YesNoAnswer,
    answer_from_json,
    answer_text,
    answer_to_json,
    exact_match,
    f1,
    gold_texts,
    judge,
)

PARIS = EntityAnswer("Paris", ("City of Light",))
SAO_PAULO = EntityAnswer("São Paulo")
TOLKIEN = EntityAnswer("J. R. R. Tolkien", ("John Ronald Reuel Tolkien",))


def number(value: str | int, unit: str = "", tolerance: str | int = 0) -> NumberAnswer:
    return NumberAnswer(Fraction(value), unit, Fraction(tolerance))


def names(*items: str, ordered: bool = False) -> ListAnswer:
    return ListAnswer(tuple(EntityAnswer(item) for item in items), ordered)


RIGHT: list[tuple[Answer, str]] = [
    (PARIS, "Paris"),
    (PARIS, "paris"),
    (PARIS, "  PARIS \n"),
    (PARIS, "Paris."),
    (PARIS, '"Paris"'),
    (PARIS, "“Paris”"),
    (PARIS, "**Paris**"),
    (PARIS, "`Paris`"),
    (PARIS, "the City of Light"),
    (PARIS, "Par\u200bis"),
    (PARIS, "Ｐａｒｉｓ"),
    (SAO_PAULO, "Sao Paulo"),
    (SAO_PAULO, "SÃO PAULO"),
    (SAO_PAULO, "Sa\u0303o Paulo"),
    (SAO_PAULO, "São\u00a0Paulo"),
    (EntityAnswer("The Hague"), "Hague"),
    (EntityAnswer("Hague"), "The Hague"),
    (TOLKIEN, "J.R.R. Tolkien"),
    (TOLKIEN, "JRR Tolkien"),
    (TOLKIEN, "John Ronald Reuel Tolkien"),
    (EntityAnswer("Saint-Denis"), "Saint Denis"),
    (EntityAnswer("O’Brien"), "O'Brien"),
    (EntityAnswer("Łódź"), "Lodz"),
    (EntityAnswer("Straße"), "Strasse"),
    (EntityAnswer("Ærø"), "Aero"),
    (EntityAnswer("Washington, D.C."), "Washington, DC"),
    (EntityAnswer("St. Ives"), "St Ives"),
    (EntityAnswer("C++"), "c++"),
    (EntityAnswer("C#"), "C#"),
    (EntityAnswer("Москва"), "москва"),
    (EntityAnswer("東京"), "東京"),
    (EntityAnswer("A"), "A"),
    (TextAnswer("To be, or not to be"), "to be, or not to be."),
    (TextAnswer("crimson", ("deep red",)), "Deep red"),
    (number(42), "42"),
    (number(42), "42."),
    (number(42), "42.0"),
    (number(42), "forty-two"),
    (number(42), "Forty two"),
    (number(42), "42 (approx.)"),
    (number(42), "about 42"),
    (number(42), "~42"),
    (number(42), "+42"),
    (number(-5), "-5"),
    (number(-5), "−5"),
    (number(-5), "minus five"),
    (number(0), "zero"),
    (number(0), "none"),
    (number(0), "0"),
    (number(12000000), "12 million"),
    (number(12000000), "12,000,000"),
    (number(12000000), "12 000 000"),
    (number(12000000), "12.000.000"),
    (number(12000000), "12'000'000"),
    (number(12000000), "12M"),
    (number(12000000), "12 mn"),
    (number(12000000), "twelve million"),
    (number(12000000), "1.2e7"),
    (number(12000000), "1.2 × 10^7"),
    (number(12000000), "1,20,00,000"),
    (number(12000000), "12 million people"),
    (number(12500000, "inhabitants"), "12.5 million inhabitants"),
    (number(1105), "one thousand one hundred and five"),
    (number(100000), "a hundred thousand"),
    (number(24), "two dozen"),
    (number("1.5"), "1.5"),
    (number("1.5"), "1,5"),
    (number("1.5"), "3/2"),
    (number("1.5"), "1 1/2"),
    (number("1.5"), "1½"),
    (number(".5"), ".5"),
    (number(1500), "1,500"),
    (number(1500), "1500"),
    (number(412, "km"), "412"),
    (number(412, "km"), "412 km"),
    (number(412, "km"), "412km"),
    (number(412, "km"), "412 kilometres"),
    (number(412, "kilometres"), "412 kilometers"),
    (number(412, "km"), "412,000 m"),
    (number(412, "km"), "256 miles"),
    (number(5, "km2"), "5 km²"),
    (number(5, "km2"), "5 square kilometers"),
    (number(5, "km2"), "5 sq. km"),
    (number(5, "km2"), "500 ha"),
    (number(12, "m"), "12m"),
    (number(12, "km"), "12-km"),
    (number(3, "bridges"), "3-bridges"),
    (number(90, "min"), "1 h 30 min"),
    (number(90, "minutes"), "1.5 hours"),
    (number(71, "in"), "5 ft 11 in"),
    (number(100, "°C"), "212 °F"),
    (number(100, "°C"), "100 degrees Celsius"),
    (number(-40, "°F"), "-40 °C"),
    (number(7, "%"), "7 %"),
    (number(7, "%"), "7 percent"),
    (number(5000000, "$"), "$5 million"),
    (number(5000000, "US dollars"), "5 million US dollars"),
    (number(3, "bridges"), "3 bridges"),
    (number(1, "bridges"), "1 bridge"),
    (number(3, "universities"), "three universities"),
    (number(31, "years"), "31 years"),
    (number(100, "", 5), "103"),
    (number(30, "m3/s"), "30 m³/s"),
    (number(30, "m3/s"), "30 cubic metres per second"),
    (DateAnswer(1876, 5, 3), "3 May 1876"),
    (DateAnswer(1876, 5, 3), "May 3, 1876"),
    (DateAnswer(1876, 5, 3), "May 3rd 1876"),
    (DateAnswer(1876, 5, 3), "the 3rd of May, 1876"),
    (DateAnswer(1876, 5, 3), "1876-05-03"),
    (DateAnswer(1876, 5, 3), "on 3 may 1876"),
    (DateAnswer(1876, 9, 3), "3 Sept. 1876"),
    (DateAnswer(1876, 5, 3), "Wednesday, 3 May 1876"),
    (DateAnswer(1876, 5, 13), "13/05/1876"),
    (DateAnswer(1876, 5, 13), "5/13/1876"),
    (DateAnswer(1876, 5, 5), "5.5.1876"),
    (DateAnswer(1876, 5), "May 1876"),
    (DateAnswer(1876, 5), "1876-05"),
    (DateAnswer(1876), "1876"),
    (DateAnswer(1876), "in 1876"),
    (DateAnswer(1876), "the year 1876"),
    (DateAnswer(1876), "AD 1876"),
    (DateAnswer(1876), "1876 CE"),
    (DateAnswer(1876), "c. 1876"),
    (DateAnswer(1876), "3 May 1876"),
    (DateAnswer(-44), "44 BC"),
    (DateAnswer(-44, 3, 15), "15 March 44 BCE"),
    (DateAnswer(2000, 2, 29), "29 February 2000"),
    (YesNoAnswer(True), "yes"),
    (YesNoAnswer(True), "Yes."),
    (YesNoAnswer(True), "TRUE"),
    (YesNoAnswer(False), "no"),
    (YesNoAnswer(False), "False"),
    (names("Rome", "Oslo"), "Rome, Oslo"),
    (names("Rome", "Oslo"), "Oslo and Rome"),
    (names("Rome", "Oslo"), "oslo; rome"),
    (names("Rome", "Oslo"), "Oslo & Rome"),
    (names("Rome", "Oslo"), "- Oslo\n- Rome"),
    (names("Rome", "Oslo"), "1. Oslo\n2. Rome"),
    (names("Rome", "Oslo"), '["Rome", "Oslo"]'),
    (names("Rome", "Oslo", "Bern"), "Bern, Oslo, and Rome"),
    (names("Rome"), "Rome"),
    (names("Trinidad and Tobago", "Cuba"), "Cuba and Trinidad and Tobago"),
    (names("Trinidad and Tobago", "Cuba"), "Trinidad and Tobago, Cuba"),
    (names("Washington, D.C.", "Oslo"), "Washington, D.C., Oslo"),
    (names("Rome", "Oslo", ordered=True), "Rome, then Oslo".replace(" then", "")),
    (ListAnswer((number(1200), number(7))), "1,200 and 7"),
    (AnyAnswer((number(7), EntityAnswer("seven hills"))), "Seven Hills"),
    (AnyAnswer((number(7), EntityAnswer("seven hills"))), "7"),
    (UNANSWERABLE, "not answerable"),
    (UNANSWERABLE, "Not answerable."),
    (UNANSWERABLE, "unknown"),
    (UNANSWERABLE, "The question cannot be answered"),
    (number(1), "1.000"),
    (number(1234), "1,234"),
    (number(1234), "1 234"),
    (number(12, "km"), "approximately 12 km"),
    (number(12, "km"), "12 Km"),
    (number(12, "km"), "12 km."),
    (number(1000000), "1 million"),
    (number(1000000), "a million"),
    (number(1000000), "one million"),
    (number(1000000), "1,000 thousand"),
    (number(250), "two hundred fifty"),
    (number(250), "2.5 hundred"),
    (number(19), "nineteen"),
    (number(1900), "nineteen hundred"),
    (number(-3, "°C"), "minus 3 °C"),
    (number(-3, "°C"), "-3°C"),
    (number(30, "km²"), "30 km^2"),
    (number(30, "km²"), "30 square kilometres"),
    (number(9, "days"), "9 days"),
    (number(9, "days"), "9"),
    (number(14, "days"), "2 weeks"),
    (number(2, "days"), "48 hours"),
    (number(31, "years"), "31 years old"),
    (number(7), "seven"),
    (PARIS, "'Paris'"),
    (PARIS, "PARIS"),
    (PARIS, "Pàris"),
    (PARIS, "Ｐaris"),
    (EntityAnswer("Saint-Étienne"), "saint etienne"),
    (EntityAnswer("X-1"), "X-1"),
    (EntityAnswer("A.B. Smith"), "AB Smith"),
    (EntityAnswer("Mount St. Helens"), "Mount St Helens"),
    (EntityAnswer("The The"), "The The"),
    (EntityAnswer("The"), "The"),
    (DateAnswer(1876, 5, 3), "1876/05/03"),
    (DateAnswer(1876, 5, 3), "May 3rd, 1876"),
    (DateAnswer(1876, 5, 3), "3rd May 1876"),
    (DateAnswer(1876, 5, 3), "1876-5-3"),
    (DateAnswer(720), "720"),
    (DateAnswer(720), "720 AD"),
    (DateAnswer(720), "in the year 720"),
    (UNANSWERABLE, "N/A"),
    (names("Paris", "Rome"), "Paris\nRome"),
    (names("Paris", "Rome"), "Paris, Rome."),
    (names("Paris", "Rome"), "the Paris, a Rome"),
    (number(5), "five (5)"),
    (YesNoAnswer(True), "Yes!"),
    (names("Paris", "Rome"), "Paris,, Rome"),
    (number(31536, "km²"), "31,536 square km"),
    (number(5, "km³"), "5 cubic km"),
    (number(31536), "thirty-one thousand, five hundred and thirty-six"),
    (number(864, "km"), "864 km (537 mi)"),
    (number(864, "km"), "864 km (537 miles)."),
    (DateAnswer(1969, 12, 17), "Wed, 17 Dec 1969"),
    (DateAnswer(1969, 12, 17), "Wed. 17 Dec. 1969"),
    (UNANSWERABLE, "Not specified."),
    (UNANSWERABLE, "not stated in the encyclopedia"),
    (names("Paris", "Rome"), "Paris; Rome;"),
    (names("Paris", "Rome"), "Paris | Rome"),
]

WRONG: list[tuple[Answer, str]] = [
    (number(864, "km"), "864 km (863 km)"),
    (number(864, "km"), "863 km (864 km)"),
    (number(864, "km"), "864 km (864 km) (864 km)"),
    (number(864, "km"), "864 (or 865)"),
    (number(105), "one hundred, five"),
    (YesNoAnswer(True), "yes! no!"),
    (DateAnswer(1969, 12, 17), "Wed or Thu 17 Dec 1969"),
    (names("Paris", "Rome"), "Paris | Rome | Oslo"),
    (names("Paris", "Rome"), "| ; ,"),
    (PARIS, ""),
    (PARIS, "   "),
    (PARIS, "Paris or Lyon"),
    (PARIS, "Paris, Lyon"),
    (PARIS, "Paris / Lyon"),
    (PARIS, "Paris (or Lyon)"),
    (PARIS, "Paris Lyon"),
    (PARIS, "The answer is Paris"),
    (PARIS, "not Paris"),
    (PARIS, "Pari"),
    (PARIS, "Paris Paris"),
    (PARIS, "Lyon"),
    (PARIS, "not answerable"),
    (PARIS, "Paris" + " " * 300 + "x"),
    (PARIS, "Paris" * 20000),
    (PARIS, "?"),
    (PARIS, "\x00"),
    (PARIS, "%s"),
    (EntityAnswer("C++"), "C"),
    (EntityAnswer("C"), "C++"),
    (EntityAnswer("C"), "C#"),
    (EntityAnswer("C"), "C-"),
    (EntityAnswer("май"), "маи"),
    (EntityAnswer("か"), "が"),
    (EntityAnswer("Apollo 11"), "Apollo 12"),
    (EntityAnswer("Apollo 1"), "Apollo 11"),
    (TextAnswer("To be, or not to be"), "or not to be"),
    (number(42), "43"),
    (number(42), "-42"),
    (number(-5), "5"),
    (number(5), "−5"),
    (number(5), "--5"),
    (number("1.5"), "15"),
    (number(15), "1.5"),
    (number(42), "40-45"),
    (number(42), "42-43"),
    (number(42), "42–43"),
    (number(42), "40 to 45"),
    (number(42), "between 40 and 45"),
    (number(42), "42 or 43"),
    (number(42), "42, 43"),
    (number(42), "42 43"),
    (number(42), "42 ± 5"),
    (number(42), "more than 41"),
    (number(42), "< 43"),
    (number(42), "at least 42"),
    (number(42), "42+"),
    (number(42), "42 km"),
    (number(42), "42 %"),
    (number(42), "forty"),
    (number(42), "four two"),
    (number(42), "the answer is 42"),
    (number(42), "42 million"),
    (number(42), "6*7"),
    (number(42), "0x2a"),
    (number(42), "42/1/1"),
    (number(42), "42/0"),
    (number(42), "1e99"),
    (number(42), "NaN"),
    (number(42), "inf"),
    (number(42), "²"),
    (number(12000000), "12"),
    (number(12000000), "12 billion"),
    (number(12345678), "12.3 million"),
    (number(412, "km"), "412 miles"),
    (number(412, "km"), "412 m"),
    (number(412, "km"), "412 kg"),
    (number(412, "km"), "412 km or so"),
    (number(412, "km"), "257 miles"),
    (number(412, "km"), "0 thousand miles"),
    (number(412, "km"), "412 km, 500 km"),
    (number(12, "km"), "12 million"),
    (number(5, "km2"), "5 km"),
    (number(100, "°C"), "100 °F"),
    (number(5000000, "$"), "€5 million"),
    (number(7, "%"), "0.07"),
    (number(3, "bridges"), "3 rivers"),
    (number(71, "in"), "11 in 5 ft"),
    (number(100, "", 5), "106"),
    (DateAnswer(1876, 5, 3), "4 May 1876"),
    (DateAnswer(1876, 5, 3), "3 May 1877"),
    (DateAnswer(1876, 5, 3), "3/5/1876"),
    (DateAnswer(1876, 5, 3), "5/3/1876"),
    (DateAnswer(1876, 5, 3), "3/5/76"),
    (DateAnswer(1876, 5, 3), "May 1876"),
    (DateAnswer(1876, 5, 3), "1876"),
    (DateAnswer(1876, 5, 3), "3 May"),
    (DateAnswer(1876, 5, 3), "3 or 4 May 1876"),
    (DateAnswer(1876, 5, 3), "3 May 1876 or 4 May 1876"),
    (DateAnswer(1876), "1876 or 1877"),
    (DateAnswer(1876), "1876-77"),
    (DateAnswer(1876), "1870s"),
    (DateAnswer(1876), "76"),
    (DateAnswer(1876), "1876 BC"),
    (DateAnswer(-44), "44"),
    (DateAnswer(-44), "AD 44 BC"),
    (DateAnswer(1900, 2, 28), "29 February 1900"),
    (DateAnswer(1876, 5, 3), "31 April 1876"),
    (YesNoAnswer(True), "no"),
    (YesNoAnswer(False), "yes"),
    (YesNoAnswer(True), "yes and no"),
    (YesNoAnswer(True), "yes or no"),
    (YesNoAnswer(True), "maybe"),
    (YesNoAnswer(True), "not answerable"),
    (YesNoAnswer(True), "1"),
    (names("Rome", "Oslo"), "Rome"),
    (names("Rome", "Oslo"), "Rome, Oslo, Bern"),
    (names("Rome", "Oslo"), "Rome, Rome"),
    (names("Rome", "Oslo"), "Rome, Oslo, Rome"),
    (names("Rome", "Oslo"), "Rome or Oslo"),
    (names("Rome", "Oslo"), "Rome Oslo"),
    (names("Rome", "Oslo"), "Rome, Bern"),
    (names("Rome", "Oslo", ordered=True), "Oslo, Rome"),
    (names("Trinidad and Tobago", "Cuba"), "Trinidad, Tobago, Cuba"),
    (names("Rome", "Oslo"), "[" * 190),
    (AnyAnswer((number(7), EntityAnswer("seven hills"))), "8"),
    (AnyAnswer(()), "8"),
    (UNANSWERABLE, "Paris"),
    (UNANSWERABLE, "no"),
    (UNANSWERABLE, "0"),
    (UNANSWERABLE, "unknown or Paris"),
    (number(42), "42\n43"),
    (number(42), "42; 43"),
    (number(42), "42.0.0"),
    (number(1000), "1.000"),
    (number(1234), "1.234"),
    (number(12), "12 (not 13)"),
    (number(12, "km"), "12 km (7.5 mi)"),
    (number(5), "V"),
    (number(500000), "half a million"),
    (number(-3, "°C"), "3 °C below zero"),
    (number(30, "km²"), "30 sqkm"),
    (number(48, "days"), "48 hours"),
    (number(7, "%"), "7 pct"),
    (number(0), "no"),
    (number(3), "3rd"),
    (number(3), "third"),
    (PARIS, "Paris (France)"),
    (PARIS, "paris!"),
    (PARIS, "Paris?"),
    (PARIS, "Answer: Paris"),
    (EntityAnswer("X-1"), "X1"),
    (EntityAnswer("X-1"), "X 1"),
    (EntityAnswer("Kofi Ule (poet)"), "Kofi Ule"),
    (DateAnswer(1876, 5, 3), "03.05.1876"),
    (DateAnswer(1876, 5, 3), "18760503"),
    (DateAnswer(1876, 5, 3), "3. Mai 1876"),
    (DateAnswer(1876, 5, 3), "3. May 1876"),
    (DateAnswer(1876, 5, 3), "1876-05-03T00:00:00"),
    (DateAnswer(1876), "1,876"),
    (DateAnswer(1876), "1876.0"),
    (DateAnswer(1876), "1876 or later"),
    (DateAnswer(1876), "before 1876"),
    (YesNoAnswer(True), "yes, it is"),
    (UNANSWERABLE, "I don't know"),
    (UNANSWERABLE, "not answerable, but maybe Paris"),
    (names("Paris", "Rome"), "Paris and Rome and Oslo"),
    (names("Paris", "Rome"), "1) Paris 2) Rome"),
    (names("Paris", "Rome"), "{'Paris','Rome'}"),
]


def test_the_table_is_large_enough() -> None:
    assert len(RIGHT) >= 100
    assert len(WRONG) >= 100
    assert not {(repr(answer), text) for answer, text in RIGHT} & {(repr(answer), text) for answer, text in WRONG}


@pytest.mark.parametrize(("answer", "submitted"), RIGHT, ids=lambda value: repr(value)[:60])
def test_right(answer: Answer, submitted: str) -> None:
    assert judge(answer, submitted).correct, judge(answer, submitted).reason


@pytest.mark.parametrize(("answer", "submitted"), WRONG, ids=lambda value: repr(value)[:60])
def test_wrong(answer: Answer, submitted: str) -> None:
    verdict = judge(answer, submitted)
    assert not verdict.correct
    assert verdict.reason


_names = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Mn", "Zs", "P", "S")), min_size=1)
_simple = st.one_of(
    st.builds(EntityAnswer, _names),
    st.builds(TextAnswer, _names),
    st.builds(NumberAnswer, st.integers(-(10**12), 10**12).map(Fraction), st.sampled_from(["", "km", "°C", "years"])),
    st.builds(NumberAnswer, st.decimals(-1000, 1000, places=3).map(Fraction), st.sampled_from(["", "km", "$", "ha"])),
    st.dates().map(lambda day: DateAnswer(day.year, day.month, day.day)),
    st.integers(-3000, 3000).filter(bool).map(DateAnswer),
    st.booleans().map(YesNoAnswer),
    st.just(UNANSWERABLE),
)


@given(_simple)
def test_an_answer_as_we_write_it_is_right_and_survives_json(answer: Answer) -> None:
    text = answer_text(answer)
    if len(text) <= 200:
        assert judge(answer, text).correct
        assert exact_match(text, gold_texts(answer)) == 1.0
    assert answer_from_json(answer_to_json(answer)) == answer


@given(_simple, st.text(max_size=300))
def test_nothing_submitted_breaks_the_judge(answer: Answer, submitted: str) -> None:
    judge(answer, submitted)
    judge(ListAnswer((answer, EntityAnswer("Oslo"))), submitted)


@given(_simple, _simple)
def test_two_guesses_are_never_right(one: Answer, two: Answer) -> None:
    submitted = f"{answer_text(one)} or {answer_text(two)}"
    if len(submitted) <= 200:
        assert not judge(one, submitted).correct


@pytest.mark.parametrize(
    "submitted",
    ["9" * 100_000, "a, " * 33_000, " " * 100_000, "1 " * 50_000, "ã" * 100_000, "[" * 100_000, "and " * 25_000],
)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_huge_submissions_cost_microseconds(submitted: str) -> None:
    answers = [PARIS, number(3, "km"), DateAnswer(1876), names("Rome", "Oslo"), UNANSWERABLE, YesNoAnswer(True)]
    started = time.process_time()
    for _ in range(100):
        assert not any(judge(answer, submitted).correct for answer in answers)
    assert (time.process_time() - started) / 600 < 1e-3


@pytest.mark.flaky(reruns=1)  # it measures time
def test_the_longest_lists_of_guesses_are_quick_to_refuse() -> None:
    items = ListAnswer(tuple(EntityAnswer("a") for _ in range(20)))
    started = time.process_time()
    assert not judge(items, ",".join("a" * 99)).correct
    assert judge(items, ", ".join("a" * 20)).correct
    assert time.process_time() - started < 1


def test_unit_conversion_agrees_with_pint() -> None:
    pint = pytest.importorskip("pint")
    registry = pint.UnitRegistry(non_int_type=Fraction)
    pairs = [
        ("mile", "km"), ("yard", "m"), ("inch", "cm"), ("nautical_mile", "m"), ("acre", "m2"), ("hectare", "m2"),
        ("gallon", "l"), ("pound", "kg"), ("ounce", "g"), ("stone", "kg"), ("week", "hours"), ("knot", "km/h"),
        ("mph", "km/h"), ("feet", "m"), ("light_year", "km"), ("MWh", "kWh"), ("cubic_feet", "m3"),
    ]  # fmt: skip
    for one, other in pairs:
        theirs = (Fraction(7) * registry.Unit(one)).to(registry.Unit(other.replace("m2", "m**2").replace("m3", "m**3")))
        exact = Fraction(theirs.magnitude).limit_denominator(10**12)
        slack = abs(exact) / 10**9
        assert judge(NumberAnswer(exact, other, slack), f"7 {one.replace('_', ' ')}").correct, (one, other)
        assert not judge(NumberAnswer(exact * Fraction(102, 100), other), f"7 {one.replace('_', ' ')}").correct


def test_squad_metrics() -> None:
    assert exact_match("The Paris!", ["paris"]) == 1.0
    assert exact_match("-5", ["5"]) == 1.0  # why it is a metric only
    assert f1("Paris or Lyon", ["Paris"]) == pytest.approx(0.5)
    assert f1("", ["Paris"]) == 0.0
    assert f1("Paris", []) == 0.0
