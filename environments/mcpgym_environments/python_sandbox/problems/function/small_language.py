"""A small language of expressions whose operators, precedences and directions the seed draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd
from random import Random
from typing import NamedTuple

from mcpgym_environments.python_sandbox.problems.function.making import Wanted, written
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments


class Meaning(NamedTuple):
    """What an operator does: in words, here, and in the solution."""

    words: str
    apply: Callable[[int, int], int]
    code: str


_MEANINGS = (
    Meaning("a plus b", lambda a, b: a + b, "a + b"),
    Meaning("a minus b", lambda a, b: a - b, "a - b"),
    Meaning("a times b", lambda a, b: a * b, "a * b"),
    Meaning("the greater of a and b", max, "a if a > b else b"),
    Meaning("the smaller of a and b", min, "a if a < b else b"),
    Meaning(
        "the difference between a and b without its sign", lambda a, b: abs(a - b), "(a - b) if a > b else (b - a)"
    ),
    Meaning("twice a, plus b", lambda a, b: 2 * a + b, "a + a + b"),
    Meaning("a, minus three times b", lambda a, b: a - 3 * b, "a - b - b - b"),
    Meaning("the greatest common divisor of a and b (of 0 and 0 it is 0)", gcd, "__import__('math').gcd(a, b)"),
    Meaning("a times a, plus b", lambda a, b: a * a + b, "a ** 2 + b"),
)


@dataclass(frozen=True, slots=True)
class Operator:
    """A sign with its meaning; operators of a higher rank bind their operands first."""

    sign: str
    meaning: Meaning
    rank: int
    from_right: bool


@dataclass(frozen=True, slots=True)
class Language:
    """The whole language. Each result is taken modulo ``modulus``."""

    operators: tuple[Operator, ...]
    modulus: int
    brackets: str
    prefix: str
    """The sign of the one prefix operator, ``modulus - a``; empty where there is none."""
    variables: bool

    def value(self, line: str, known: dict[str, int]) -> int:
        """The value of an expression, by climbing the ranks."""
        signs = {operator.sign: operator for operator in self.operators}
        place = 0

        def skip() -> None:
            nonlocal place
            while place < len(line) and line[place] == " ":
                place += 1

        def operand() -> int:
            nonlocal place
            skip()
            start = place
            place += 1
            if line[start] == self.prefix:
                return -operand() % self.modulus
            if self.brackets and line[start] == self.brackets[0]:
                inner = expression(0)
                skip()
                place += 1
                return inner
            if line[start].isalpha():
                return known.get(line[start], 0)
            while place < len(line) and line[place].isdigit():
                place += 1
            return int(line[start:place]) % self.modulus

        def expression(lowest: int) -> int:
            nonlocal place
            left = operand()
            while True:
                skip()
                operator = signs.get(line[place]) if place < len(line) else None
                if operator is None or operator.rank < lowest:
                    return left
                place += 1
                right = expression(operator.rank if operator.from_right else operator.rank + 1)
                left = operator.meaning.apply(left, right) % self.modulus

        return expression(0)


_SOLUTION = """
RANK = {ranks!r}
FROM_RIGHT = {from_right!r}

def apply(sign, a, b):
{apply}

def value(line, known):
    numbers, signs = [], []

    def reduce():
        sign = signs.pop()
        if sign == "prefix":
            numbers.append(({modulus} - numbers.pop()) % {modulus})
        else:
            b, a = numbers.pop(), numbers.pop()
            numbers.append(apply(sign, a, b) % {modulus})

    place, want_operand = 0, True
    while place < len(line):
        char = line[place]
        place += 1
        if char == " ":
            continue
        if char.isdigit():
            end = place
            while end < len(line) and line[end].isdigit():
                end += 1
            numbers.append(int(line[place - 1:end]) % {modulus})
            place, want_operand = end, False
        elif char.isalpha():
            numbers.append(known.get(char, 0))
            want_operand = False
        elif char == {opening!r}:
            signs.append(char)
        elif char == {closing!r}:
            while signs[-1] != {opening!r}:
                reduce()
            signs.pop()
            want_operand = False
        elif want_operand and char == {prefix!r}:
            signs.append("prefix")
        else:
            while signs and signs[-1] != {opening!r} and (
                signs[-1] == "prefix" or RANK[signs[-1]] > RANK[char]
                or RANK[signs[-1]] == RANK[char] and char not in FROM_RIGHT
            ):
                reduce()
            signs.append(char)
            want_operand = True
    while signs:
        reduce()
    return numbers[0]

def {function}({parameter}):
{body}
"""

_ONE = "    return value(expression, {})"
_LINES = """\
    known, results = {{}}, []
    for line in lines:
        name, equals, right = line.rpartition({equals!r})
        result = value(right if equals else line, known)
        if equals:
            known[name.strip()] = result
        else:
            results.append(result)
    return results"""


def _language(random: Random, level: int) -> Language:
    count = {1: 3, 2: 4, 3: 4, 4: 5, 5: 5}[level]
    signs = random.sample("+-*#@&%^!:", count)
    meanings = random.sample(_MEANINGS, count)
    ranks = {1: 1, 2: 2, 3: 2, 4: 3, 5: 3}[level]
    right_rank = random.randrange(ranks) if level >= 4 else -1
    drawn = [*range(ranks), *(random.randrange(ranks) for _ in range(count - ranks))]
    return Language(
        tuple(
            Operator(sign, meaning, rank, rank == right_rank)
            for sign, meaning, rank in zip(signs, meanings, drawn, strict=True)
        ),
        random.choice((97, 101, 499, 997, 1009, 9973)),
        random.choice(("()", "[]", "{}")) if level >= 3 else "",
        random.choice([sign for sign in "~$" if sign not in signs]) if level >= 4 else "",
        level == 5,
    )


def _expression(random: Random, language: Language, terms: int, depth: int, names: str) -> str:
    parts = []
    for term in range(terms):
        if term:
            parts.append(random.choice(language.operators).sign)
        prefix = language.prefix * random.choice((0, 0, 0, 1, 2)) if language.prefix else ""
        if depth and language.brackets and random.random() < 0.35:
            inner = _expression(random, language, random.randint(1, 4), depth - 1, names)
            parts.append(f"{prefix}{language.brackets[0]}{inner}{language.brackets[1]}")
        elif names and random.random() < 0.4:
            parts.append(prefix + random.choice(names))
        else:
            parts.append(prefix + str(random.choice((0, 1, 2, random.randint(3, 20), random.randint(0, 5000)))))
    return (" " if random.random() < 0.8 else "").join(parts)


def _program(random: Random, language: Language, lines: int, equals: str) -> list[str]:
    made = []
    for _ in range(lines):
        line = _expression(random, language, random.randint(1, 5), 2, "abcx")
        made.append(f"{random.choice('abcx')} {equals} {line}" if random.random() < 0.6 else line)
    return [*made, _expression(random, language, 3, 1, "abcx")]


def _make(random: Random, level: int) -> Problem:
    language = _language(random, level)
    equals = random.choice(("=", "<-", ":="))
    while any(operator.sign in equals for operator in language.operators):
        equals = random.choice(("=", "<-"))
    if any(operator.sign == "-" for operator in language.operators):
        equals = "="
    function = random.choice(("evaluate", "calculate", "result_of", "work_out"))

    def one(expression: str) -> int:
        return language.value(expression, {})

    def many(lines: list[str]) -> list[int]:
        known: dict[str, int] = {}
        results = []
        for line in lines:
            name, found, right = line.partition(equals)
            if found:
                known[name.strip()] = language.value(right, known)
            else:
                results.append(language.value(line, known))
        return results

    def example(random: Random, size: int) -> Arguments:
        if language.variables:
            return (_program(random, language, size, equals),)
        return (_expression(random, language, size + 2, min(level, 3), ""),)

    def inputs(random: Random) -> Iterator[Arguments]:
        if language.variables:
            yield ([],)
            yield (["a"],)
            yield ([f"a {equals} a", "a"],)
            yield ([f"x {equals} {language.modulus + 5}", f"{language.prefix}x"],)
        else:
            yield ("7",)
            yield (f"{language.modulus}",)
            yield (f" {language.modulus * 3 + 2} ",)
            first, last = language.operators[0].sign, language.operators[-1].sign
            yield (f"9 {first} 8 {last} 7 {first} 6 {last} 5",)
            yield (f"3{last}4{first}50{last}6{last}70",)
        while True:
            yield example(random, random.randint(2, 10))

    ranks = sorted({operator.rank for operator in language.operators}, reverse=True)
    lines = [f"a {operator.sign} b means {operator.meaning.words}" for operator in language.operators]
    rules = [
        "The language: whole numbers in decimal, with these operators between them:",
        *(f"- {line}" for line in lines),
        f"Every number and every result of an operator is taken modulo {language.modulus} before anything else is done "
        f"with it; it is never negative (as Python's % gives it).",
    ]
    if len(ranks) == 1:
        rules.append("No operator binds more tightly than another: they are applied from left to right.")
    else:
        groups = [" ".join(o.sign for o in language.operators if o.rank == rank) for rank in ranks]
        rules.append("From the most tightly binding to the least: " + ", then ".join(groups) + ".")
        right = [operator.sign for operator in language.operators if operator.from_right]
        rules.append(
            "Operators that bind equally are applied from left to right."
            if not right
            else f"Operators that bind equally are applied from left to right, but {' '.join(right)} from right to "
            f"left "
            f"(2 {right[0]} 3 {right[0]} 4 is 2 {right[0]} (3 {right[0]} 4), where the brackets show the order)."
        )
    if language.brackets:
        rules.append(f"What stands in {language.brackets[0]} and {language.brackets[1]} is worked out first.")
    if language.prefix:
        rules.append(
            f"In front of a number{', a variable' * language.variables} or a bracket may stand {language.prefix}, also "
            f"several times: {language.prefix}a means 0 minus a, and binds more tightly than all others."
        )
    if language.variables:
        rules.append(
            f"A program is a list of lines. A line like x {equals} 3 works out what stands on the right and keeps it "
            f"in a "
            f"variable, named by one small letter; any other line is an expression whose value is a result. A variable "
            f"that has no value yet is 0."
        )
    rules.append("There may be spaces or none around every sign. What is given is always well-formed.")

    apply = "\n".join(f"    if sign == {o.sign!r}: return {o.meaning.code}" for o in language.operators)
    mistake = (
        ("and char not in FROM_RIGHT", "and char in FROM_RIGHT")
        if level < 4
        else ("RANK[signs[-1]] > RANK[char]", "RANK[signs[-1]] < RANK[char]")
    )
    wanted = Wanted(
        function,
        {"lines": "the program, a list of strings"} if language.variables else {"expression": "a string"},
        "\n".join(rules),
        "the results, a list of integers, in the order of their lines." if language.variables else "its value, an "
        "integer.",
        many if language.variables else one,
        inputs,
        [example(random, size) for size in (2, 3)],
        _SOLUTION.format(
            ranks={o.sign: o.rank for o in language.operators},
            from_right="".join(o.sign for o in language.operators if o.from_right),
            apply=apply, modulus=language.modulus, function=function,
            opening=language.brackets[:1] or "open", closing=language.brackets[1:] or "close",
            prefix=language.prefix or "none", parameter="lines" if language.variables else "expression",
            body=_LINES.format(equals=equals) if language.variables else _ONE,
        ),
        mistake,
    )  # fmt: skip
    return written("small-language", level, wanted)


GENERATOR = Made("small-language", "function", "an interpreter of a small language with operators of its own", _make)
