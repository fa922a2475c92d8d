"""Submitted answers are judged by their type, exactly, and at no cost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym.errors import InfrastructureError
from mcpgym_environments.python_sandbox.problems.answers import (
    LONGEST_ANSWER,
    Answer,
    DateAnswer,
    ListAnswer,
    NumberAnswer,
    SurdAnswer,
    WordAnswer,
    answer_text,
    judge,
)
from mcpgym_environments.python_sandbox.problems.formulas import has_second_chance, judge_formula
from mcpgym_environments.python_sandbox.problems.numbers import read_number
from mcpgym_environments.python_sandbox.problems.surds import canonical, read_surd, surd_text


def number(value: object, tolerance: object = 0, unit: str = "") -> NumberAnswer:
    return NumberAnswer(Fraction(str(value)), Fraction(str(tolerance)), unit)


def numbers(*values: int, ordered: bool = True) -> ListAnswer:
    return ListAnswer(tuple(map(number, values)), ordered)


SURD = SurdAnswer(((Fraction(3), 1), (Fraction(7, 2), 5)))

RIGHT: list[tuple[Answer, str]] = [
    *((number(1234), text) for text in (
        "1234", "1,234", "1 234", "1'234", "1_234", " 1234\n", "+1234", "1234.0", "1234.", "1.234e3", "123400E-2",
        "01234", "2468/2", "**1234**", "`1234`", '"1234"', "$1234$", "\\boxed{1234}", "$\\boxed{1234}$", "1234.00.",
        "1\u202f234", "1\u00a0234", "\\frac{2468}{2}",
    )),
    *((number(-5), text) for text in ("-5", "−5", "- 5", "-10/2", "-5.0")),
    *((number("1/3"), text) for text in ("1/3", "2/6", "1 / 3", "\\frac{1}{3}", "\\dfrac{1}{3}", "1⁄3")),
    (number("1/4"), ".25"), (number("1/4"), "0.250"), (number("1/3", "0.001"), "0.3333"),
    (number(12.5, unit="kg"), "12.5 kg"),
    (number(12.5, unit="kg"), "12.5kg"), (number(12.5, unit="kg"), "12.5 KG"), (number(12.5, unit="kg"), "12.5"),
    (number(10**400), "1" + "0" * 400), (number(10**400), "1e400"),
    *((numbers(3, 1, 2), text) for text in (
        "3, 1, 2", "3 1 2", "[3, 1, 2]", "(3, 1, 2)", "3;1;2", "3\n1\n2", '["3", 1, 2.0]', "`[3,1,2]`",
    )),
    *((numbers(3, 1, 2, ordered=False), text) for text in ("1, 2, 3", "{3, 2, 1}", "2 3 1")),
    *((numbers(), text) for text in ("[]", "none", "()", "{}", "set()")),
    *((DateAnswer(date(2024, 2, 29)), text) for text in ("2024-02-29", '"2024-02-29"', "2024-02-29.")),
    *((WordAnswer("Ada Lund"), text) for text in ("Ada Lund", "ada  lund", "'Ada Lund'", "Ada Lund.", "**Ada Lund**")),
    (WordAnswer("#-#-", exact=True), "#-#-"), (WordAnswer("'a'", exact=True), "'a'"),
    (WordAnswer("aB", exact=True), "`aB`"),
    (ListAnswer((WordAnswer("Ada Lund"), WordAnswer("Bela")), ordered=False), "Bela, Ada Lund"),
    (ListAnswer((WordAnswer("a"), WordAnswer("b"))), "['a', 'b']"),
    *((SURD, text) for text in (
        "3 + 7/2*sqrt(5)", "7*sqrt(5)/2 + 3", "3+3.5√5", "3 + \\sqrt{5} + 5/2*sqrt(5)", "1+2 + 7/4*sqrt(20)",
    )),
]  # fmt: skip

WRONG: list[tuple[Answer, str]] = [
    *((number(1234), text) for text in (
        "", " ", "1235", "-1234", "12 34", "1,23,4", "1,2345", "1.234", "1234 5", "1234, 1235", "1234 or 1235",
        "about 1234",
        "The answer is 1234", "1234 kg", "1234 %", "x = 1234", "1234!", "2*617", "1234+0", "0x4d2", "１２３４", "١٢٣٤",
        "nan", "inf", "1e", "1234/0", "1234/1/1", "1 2468/2", "1234\x00", "1234\n1234", "[1234]", "12342", "--1234",
        "1e99999999999", "1234e999999999", "１234", "1234²", "True", "1,234.5.6", "int(1234)", "1234j",
    )),
    *((number(10**6), text) for text in ("1e6.0", "10^6", "10**6", "1 million")),
    (number("1/3"), "0.3333"), (number("1/3"), "0." + "3" * 500), (number("1/3", "0.001"), "0.33"), (number(0), "nan"),
    (number(0, 10), "inf"), (number(0, 10), "-inf"), (number(0), "0/0"), (number(0), "1e-999"),
    (number(12.5, unit="kg"), "12.5 g"),
    (number(12.5, unit="kg"), "kg"), (number(12.5, unit="kg"), "12.5 kg kg"),
    (number(2**53 + 1), str(float(2**53 + 1))), (number("0.1"), "0.1000000000000000055511151231257827"),
    *((numbers(3, 1, 2), text) for text in (
        "1, 2, 3", "3, 1", "3, 1, 2, 2", "3, 1, 2 or 4", "3, 1, NaN", "[3, 1, [2]]", "[3, 1, true]", "3,,1,2",
    )),
    *((numbers(3, 1, 2, ordered=False), text) for text in ("1, 1, 2, 3", "1, 2", "1, 2, 4", "1, 1, 3")),
    (numbers(), "0"), (numbers(), "no"), (numbers(1), "1 1"), (numbers(1, 1), "1"), (numbers(1_234), "1,234"),
    *((DateAnswer(date(2024, 2, 29)), text) for text in (
        "2024-02-28", "2024-2-29", "29.02.2024", "20240229", "2024-02-30", "2024-02-29 2024-03-01", "2024-02-29T00:00",
        "２０２４-02-29", "2024-W09-4",
    )),
    (WordAnswer("Ada Lund"), "Ada"), (WordAnswer("Ada Lund"), "Ada Lund or Bela"), (WordAnswer("aB", exact=True), "ab"),
    (WordAnswer("#-#-", exact=True), "#-#"), (ListAnswer((WordAnswer("a"), WordAnswer("b"))), "b, a"),
    *((SURD, text) for text in (
        "10.826237921249264", "3 + 7/2*sqrt(6)", "3 - 7/2*sqrt(5)", "3 7/2*sqrt(5)", "3 + 7/2*sqrt(5) + sqrt(2)",
        "sqrt(-5)",
        "3 + 7/0*sqrt(5)", "sqrt(99999999999999999999)", "sqrt(5", "", "3 + 7/2*5**0.5",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "text"), RIGHT)
def test_a_right_answer_is_right_however_it_is_written(answer: Answer, text: str) -> None:
    verdict = judge(answer, text)
    assert verdict.correct, verdict.reason


@pytest.mark.parametrize(("answer", "text"), WRONG)
def test_what_is_not_the_answer_is_wrong(answer: Answer, text: str) -> None:
    assert not judge(answer, text).correct


def test_reasons_do_not_tell_the_answer() -> None:
    for answer, text in WRONG:
        reason = judge(answer, text).reason
        assert reason
        assert answer_text(answer) not in reason


@settings(deadline=None, max_examples=40)
@given(st.integers(), st.integers())
def test_an_integer_is_itself_and_no_other(one: int, other: int) -> None:
    assert judge(number(one), str(one)).correct
    assert judge(number(one), f"{one:,}").correct
    assert judge(number(one), f"{one:_}").correct
    assert judge(number(one), str(other)).correct == (one == other)
    assert judge(number(one), f"{one}.0000").correct


@settings(deadline=None, max_examples=40)
@given(st.fractions(max_denominator=10**6), st.fractions(max_denominator=10**6), st.integers(1, 10**9))
def test_a_fraction_is_itself_in_any_terms(one: Fraction, other: Fraction, times: int) -> None:
    assert judge(NumberAnswer(one), answer_text(NumberAnswer(one))).correct
    assert judge(NumberAnswer(one), f"{one.numerator * times}/{one.denominator * times}").correct
    assert judge(NumberAnswer(one), str(other)).correct == (one == other)


@settings(deadline=None, max_examples=40)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-(10**9), max_value=10**9))
def test_a_decimal_is_read_exactly(value: Decimal) -> None:
    assert read_number(str(value)) == Fraction(value)
    assert read_number(f"{value:.6e}") == Fraction(Decimal(f"{value:.6e}"))


@settings(deadline=None, max_examples=40)
@given(st.fractions(), st.fractions(min_value=0, max_value=1), st.fractions(min_value=-2, max_value=2))
def test_a_tolerance_is_exact_at_its_edge(value: Fraction, tolerance: Fraction, off: Fraction) -> None:
    said = f"{(value + off).numerator}/{(value + off).denominator}"
    assert judge(NumberAnswer(value, tolerance), said).correct == (abs(off) <= tolerance)
    edge = value + tolerance
    assert judge(NumberAnswer(value, tolerance), f"{edge.numerator}/{edge.denominator}").correct


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-999, 999), max_size=8), st.randoms())
def test_a_set_is_a_set_and_a_list_a_list(values: list[int], random) -> None:  # type: ignore[no-untyped-def]
    mixed = random.sample(values, len(values))
    written = ", ".join(map(str, mixed)) or "none"
    assert judge(numbers(*values, ordered=False), written).correct
    assert judge(numbers(*values), written).correct == (mixed == values)
    assert not judge(numbers(*values, ordered=False), written + ", 1000").correct


@settings(deadline=None, max_examples=40)
@given(st.dates(), st.integers(-400, 400))
def test_a_date_is_itself(day: date, off: int) -> None:
    assert judge(DateAnswer(day), day.isoformat()).correct
    if off and 0 < day.toordinal() + off <= date.max.toordinal():
        assert not judge(DateAnswer(day), (day + timedelta(days=off)).isoformat()).correct


TERMS = st.lists(st.tuples(st.fractions(-50, 50, max_denominator=12), st.integers(0, 500)), min_size=1, max_size=5)


@settings(deadline=None, max_examples=40)
@given(TERMS)
def test_a_sum_of_roots_survives_writing_and_reading(terms: list[tuple[Fraction, int]]) -> None:
    assert read_surd(surd_text(terms)) == canonical(terms)
    assert judge(SurdAnswer(tuple(terms)), surd_text(terms)).correct


@settings(deadline=None, max_examples=40)
@given(TERMS, TERMS)
def test_sums_of_roots_are_equal_when_they_have_the_same_value(
    one: list[tuple[Fraction, int]], other: list[tuple[Fraction, int]]
) -> None:
    import mpmath

    with mpmath.workdps(60):
        terms = [*one, *((-coefficient, radicand) for coefficient, radicand in other)]
        off = sum((mpmath.mpf(c.numerator) / c.denominator * mpmath.sqrt(r) for c, r in terms), mpmath.mpf(0))
        assert (canonical(one) == canonical(other)) == (abs(off) < mpmath.mpf(10) ** -40)


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=60))
def test_any_text_gets_a_verdict(text: str) -> None:
    for answer in (number(7), numbers(1, 2), DateAnswer(date(2000, 1, 1)), WordAnswer("a"), SURD):
        assert isinstance(judge(answer, text).correct, bool)
        has_second_chance(answer, text)


HOSTILE = [
    "1e999999999", "-1e-999999999", "9" * LONGEST_ANSWER, "9" * 10**6, "1/" + "9" * 1_900, "," * LONGEST_ANSWER,
    "[" * LONGEST_ANSWER, "(" * LONGEST_ANSWER, "1 " * 999, "1e999," * 300, "sqrt(99999989)+" * 130,
    "$" * LONGEST_ANSWER, "**" * 1_000, "1," * 999 + "1", "1 111" * 390, "0" * 1_999 + "x", "1'" * 999,
    "\\boxed{" * 280, "٣" * 1_999,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
@pytest.mark.flaky(reruns=1)  # it measures time
def test_hostile_text_costs_nothing(text: str) -> None:
    answers = (number(7), number(7, unit="kg"), numbers(*range(300)), numbers(1, ordered=False), WordAnswer("a"), SURD)
    started = time.process_time()
    assert not any(judge(answer, text).correct for answer in answers)
    assert time.process_time() - started < 0.5


def test_more_digits_than_int_reads_are_read() -> None:
    code = (
        "import sys; sys.set_int_max_str_digits(640)\n"
        "from mcpgym_environments.python_sandbox.problems.numbers import read_number\n"
        "assert read_number('9' * 1900) == 10**1900 - 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


FORMULAS = (
    "3+\\frac{7}{2}\\sqrt{5}",
    "\\sqrt{5}\\left(2+\\frac{3}{2}\\right)+3",
    "(6+7sqrt(5))/2",
    "$3+\\dfrac{7\\sqrt{5}}{2}$",
)
NO_FORMULAS = (
    "10.826237921249264", "9^{9^{9^9}}", "__import__('os')", "\\int x dx", "\\input{x}", "3+x", "2**99999999", 
    "9" * 14 + "\\sqrt{5}",
    "\\frac{1}{2}" * 40,
)  # fmt: skip


def test_a_formula_has_a_second_chance() -> None:
    pytest.importorskip("math_verify")
    assert asyncio.run(judge_formula(SURD, FORMULAS[2])).correct
    assert not asyncio.run(judge_formula(SURD, "\\frac{6+7\\sqrt{6}}{2}")).correct


def test_what_is_not_made_of_roots_is_not_given_to_a_parser() -> None:
    assert [text for text in NO_FORMULAS[1:] if has_second_chance(SURD, text)] == []
    for answer in (number(7), numbers(1), WordAnswer("a")):
        assert has_second_chance(answer, "\\frac{14}{2}") is None
        assert not asyncio.run(judge_formula(answer, "3+4")).correct


def test_a_formula_that_takes_too_much_work_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpgym_environments.python_sandbox.problems import formulas

    monkeypatch.setattr(formulas, "CPU_SECONDS", 1)
    limits, reading = formulas._CHILD.split("import logging", 1)
    assert "sympy" in reading
    monkeypatch.setattr(formulas, "_CHILD", f"{limits}while True: pass")
    started = time.monotonic()
    assert not asyncio.run(judge_formula(SURD, FORMULAS[0])).correct
    assert time.monotonic() - started < formulas.WALL_SECONDS, "stopped by its own limit"


def test_a_machine_that_is_too_busy_to_read_a_formula_makes_no_answer_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from mcpgym_environments.python_sandbox.problems import formulas

    monkeypatch.setattr(formulas, "WALL_SECONDS", 0.3)
    monkeypatch.setattr(formulas, "_CHILD", "import time; time.sleep(600)")
    with pytest.raises(InfrastructureError, match=r"the machine had no 5 CPU seconds within 0\.3 s"):
        asyncio.run(judge_formula(SURD, FORMULAS[0]))
