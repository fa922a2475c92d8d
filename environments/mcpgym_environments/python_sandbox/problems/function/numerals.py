"""Numerals of unusual systems: own digits, no zero, a negative base, repeating fractions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

from mcpgym_environments.python_sandbox.problems.function.making import Wanted, written
from mcpgym_environments.python_sandbox.problems.problem import Made, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments

_PLAIN = """
DIGITS = {digits!r}

def {function}(number):
    sign = {minus!r} if number < 0 else ""
    number = abs(number)
    text = ""
    while number:
        number, digit = divmod({before}, {base})
        text = DIGITS[digit] + text
    return sign + (text or {zero!r})
"""

_NEGATIVE = """
DIGITS = {digits!r}

def {function}(number):
    text = ""
    while number:
        digit = number % {base}
        number = (number - digit) // -{base}
        text = DIGITS[digit] + text
    return text or DIGITS[0]
"""

_FRACTION = """
DIGITS = {digits!r}

def whole(number):
    text = ""
    while number:
        text = DIGITS[number % {base}] + text
        number //= {base}
    return text or DIGITS[0]

def {function}({parameters}):
{prepare}
    sign = {minus!r} if p < 0 else ""
    p = abs(p)
    seen, rest, digits = {{}}, p % q, ""
    while rest and rest not in seen:
        seen[rest] = len(digits)
        digits += DIGITS[rest * {base} // q]
        rest = rest * {base} % q
    text = sign + whole(p // q)
    if rest:
        return text + {point!r} + digits[:seen[rest]] + {opening!r} + digits[seen[rest]:] + {closing!r}
    return text + {point!r} + digits if digits else text
"""

_SUM = """\
    from math import gcd
    p, q = 0, 1
    for a, b in terms:
        p, q = p * b + a * q, q * b
        common = gcd(p, q)
        p, q = p // common, q // common"""


def _numbers(base: int, random: Random, least: int) -> Iterator[Arguments]:
    for number in (0, 1, base - 1, base, base + 1, base * base - 1, base * base, base**3 + base):
        if number >= least:
            yield (number,)
    while True:
        number = random.randrange(10 ** random.randint(1, 30))
        yield (-number if least < 0 and random.random() < 0.5 else max(number, least),)


def _integers(random: Random, level: int) -> Problem:
    base = random.randint(3, 12)
    digits = "".join(random.sample("abcdefghkmnpqrstuvwxyz" if random.random() < 0.5 else "ABCDEFGHKMNPRSTUXYZ", base))
    minus = random.choice("-_~")
    function = random.choice(("numeral", "to_text", "spell", "write_number"))

    def plain(number: int) -> str:
        if number < 0:
            return minus + plain(-number)
        return digits[number] if number < base else plain(number // base) + digits[number % base]

    def bijective(number: int) -> str:
        if number < 0:
            return minus + bijective(-number)
        length = 0
        while number >= base**length:  # the numerals of each length, all of them, come one after the other
            number -= base**length
            length += 1
        return "".join(digits[number // base**place % base] for place in reversed(range(length)))

    def negative(number: int) -> str:
        if number == 0:
            return digits[0]
        places: list[int] = []
        while number:
            number, digit = divmod(number, -base)
            if digit < 0:
                number, digit = number + 1, digit + base
            places.append(digit)
        return "".join(digits[digit] for digit in reversed(places))

    shown = [(random.randint(30, 999),), (random.randint(1000, 99999) * (-1 if level > 1 else 1),)]
    table = ", ".join(f"{digit} is {value}" for value, digit in enumerate(digits, 1 if level == 2 else 0))
    sign = f"A negative number gets the sign {minus} in front of the numeral of its absolute value."
    if level == 3:
        rules = (
            f"Write an integer in base -{base} (minus {base}): the last digit counts 1, the one before it -{base}, "
            f"then "
            f"{base * base}, then -{base**3}, and so on. The digits: {table}. Every integer has exactly one numeral "
            f"that "
            f"does not begin with {digits[0]}, without any sign; that of 0 is {digits[0]}."
        )
        reference, source = negative, _NEGATIVE
        mistake = ("number = (number - digit) // -", "number = number // -")
    elif level == 2:
        rules = (
            f"Write an integer in base {base} without a zero: the digits are {table}; the last one counts once, the "
            f"one "
            f"before it {base} times, the one before that {base * base} times, and so on. Every positive integer has "
            f"exactly one such numeral; that of 0 is the empty string. {sign}"
        )
        reference, source = bijective, _PLAIN
        mistake = ("number - 1", "number")
    else:
        rules = f"Write an integer in base {base} with the digits {table}, without leading zeros. {sign}"
        reference, source = plain, _PLAIN
        mistake = ("text = DIGITS[digit] + text", "text = text + DIGITS[digit]")
    wanted = Wanted(
        function,
        {"number": "an integer, negative, 0 or positive, which may be large"},
        rules,
        "the numeral, a string.",
        reference,
        lambda random: _numbers(base, random, -(10**40)),
        shown,
        source.format(
            digits=digits, function=function, minus=minus, base=base,
            before="number - 1" if level == 2 else "number", zero="" if level == 2 else digits[0],
        ),
        mistake,
    )  # fmt: skip
    return written("numerals", level, wanted)


def _fractions(random: Random, level: int) -> Problem:
    base = random.randint(2, 11)
    digits = "0123456789a"[:base] if random.random() < 0.5 else "".join(random.sample("abcdefghkmnpqrstuvwxyz", base))
    point, minus = random.choice((".", ",", ";")), random.choice("-_~")
    opening, closing = random.choice(("()", "[]", "{}"))
    function = random.choice(("expand", "fraction_text", "digits_of", "write_fraction"))
    adding = level == 5

    def whole(number: int) -> str:
        return digits[number] if number < base else whole(number // base) + digits[number % base]

    def text(value: Fraction) -> str:
        if value < 0:
            return minus + text(-value)
        integer, rest = divmod(value, 1)
        if not rest:
            return whole(integer)
        before = 0  # the digits before the repeating ones: as long as the denominator and the base share a factor
        while rest.denominator != 1 and _shared(rest.denominator, base):
            rest = rest * base
            before += 1
        first = whole(rest.numerator // rest.denominator).rjust(before, digits[0]) if before else ""
        rest %= 1
        if not rest:
            return f"{whole(integer)}{point}{first}"
        period = 1
        while (base**period - 1) % rest.denominator:
            period += 1
        repeated = whole(int(rest * (base**period - 1))).rjust(period, digits[0])
        return f"{whole(integer)}{point}{first}{opening}{repeated}{closing}"

    def one(numerator: int, denominator: int) -> str:
        return text(Fraction(numerator, denominator))

    def many(terms: list[list[int]]) -> str:
        return text(sum((Fraction(a, b) for a, b in terms), Fraction()))

    def pair(random: Random) -> list[int]:
        return [
            random.choice((-1, 1, 1)) * random.randint(0, 200),
            random.choice((base, base**2, random.randint(2, 60))),
        ]

    def example(random: Random, size: int) -> Arguments:
        if not adding:
            return tuple(pair(random))
        denominators = [random.choice((2, 3, 4, 5, 6, 7, 9, 10, 11, 12, base, base * 2)) for _ in range(size)]
        return ([[random.randint(-30, 30), denominator] for denominator in denominators],)

    def inputs(random: Random) -> Iterator[Arguments]:
        edges = [[0, 7], [6, 3], [1, base], [-1, base * base], [1, base - 1 or 3], [-5, 7], [1, 97], [4, 6],
                 [base + 1, 1],
                 [1, base * 7 * base]]  # fmt: skip
        if adding:
            yield ([],)
            yield ([[1, 3], [-1, 3]],)
            yield ([[1, 3], [1, 3], [1, 3]],)
            yield ([[1, 7], [-2, 7], [1, base]],)
        for edge in random.sample(edges, 4 if adding else 6):
            yield ([edge],) if adding else tuple(edge)
        while True:
            yield example(random, random.randint(2, 4))

    table = ", ".join(f"{digit} is {value}" for value, digit in enumerate(digits))
    lines = [
        f"Write {'the sum of fractions' if adding else 'a fraction'} exactly, in base {base} with the digits {table}.",
        f"First the whole part (a single {digits[0]} where it is zero, otherwise without leading zeros). If the "
        f"{'sum' if adding else 'fraction'} is not a whole number, then {point} and the digits behind the point. If "
        f"those "
        f"never end, then the repeating part is written once, in {opening} and {closing}, as short and as early as "
        f"can be; "
        f"what comes before it stands in front of it. If they end, there are no brackets and no trailing {digits[0]}.",
        f"A negative value gets the sign {minus} in front of the text of its absolute value.",
    ]
    if adding:
        lines.append("The sum of no fractions is 0.")
    parameters = (
        {"terms": "a list of [numerator, denominator], integers, the denominator positive"}
        if adding
        else {"numerator": "an integer", "denominator": "a positive integer; both may have a common factor"}
    )
    wanted = Wanted(
        function,
        parameters,
        "\n".join(lines),
        "the text, a string.",
        many if adding else one,
        inputs,
        [([[1, 6], [1, 7]],) if adding else (random.randint(-40, -2), random.choice((6, 7, 12, 14))),
         example(random, 2)],
        _FRACTION.format(
            digits=digits, base=base, function=function, minus=minus, point=point, opening=opening, closing=closing,
            parameters="terms" if adding else "numerator, denominator",
            prepare=_SUM if adding else "    p, q = numerator, denominator",
        ),
        ("seen, rest, digits = {}, p % q, \"\"", "seen, rest, digits = {}, p % q * (abs(p) > q), \"\""),
    )  # fmt: skip
    return written("numerals", level, wanted)


def _shared(number: int, base: int) -> bool:
    return any(number % factor == 0 and base % factor == 0 for factor in range(2, base + 1))


def _make(random: Random, level: int) -> Problem:
    return _fractions(random, level) if level >= 4 else _integers(random, level)


GENERATOR = Made("numerals", "function", "integers and fractions in unusual systems of numerals", _make)
