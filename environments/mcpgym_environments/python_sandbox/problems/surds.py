"""Sums of square roots, such as 3 + 2*sqrt(5), exactly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction

from mcpgym_environments.python_sandbox.problems.numbers import read_number

MOST_RADICAND = 10**8
"""The greatest number under a root that is read."""

_RATIO = r"[0-9]{1,40}(?: ?/ ?[0-9]{1,40}|\.[0-9]{1,40})?"
_TERM = re.compile(
    rf" ?(?P<sign>[+-])? ?(?:(?P<coefficient>{_RATIO}) ?[*·]? ?)?"
    r"(?P<root>(?:\\?sqrt ?(?:\( ?[0-9]{1,9} ?\)|\{ ?[0-9]{1,9} ?\})|√ ?(?:\( ?[0-9]{1,9} ?\)|[0-9]{1,9}))"
    r"(?: ?/ ?(?P<below>[0-9]{1,40}))?)? ?"
)
_DIGITS = re.compile(r"[0-9]+")


def canonical(terms: Iterable[tuple[Fraction, int]]) -> Mapping[int, Fraction]:
    """The sum of ``coefficient * sqrt(radicand)`` by square-free radicand: equal for equal sums, and only for them.

    Square roots of different square-free numbers are linearly independent over the rationals (Besicovitch, 1940).
    """
    total: dict[int, Fraction] = {}
    for coefficient, radicand in terms:
        outside, inside = _split(radicand)
        total[inside] = total.get(inside, Fraction(0)) + coefficient * outside
    return {radicand: value for radicand, value in sorted(total.items()) if value}


def read_surd(text: str) -> Mapping[int, Fraction] | None:
    """The sum of roots that the whole of ``text`` is, in canonical form; None where it is anything else."""
    text = text.replace("−", "-").replace("\\cdot", "*").replace("\\,", " ")
    terms: list[tuple[Fraction, int]] = []
    position = 0
    while position < len(text):
        found = _TERM.match(text, position)
        if found is None or (found["coefficient"] is None and found["root"] is None):
            return None
        if terms and found["sign"] is None:
            return None
        coefficient = Fraction(1) if found["coefficient"] is None else read_number(found["coefficient"])
        if coefficient is None:
            return None
        radicand = 1
        if found["root"] is not None:
            radicand = int(_DIGITS.search(found["root"])[0])  # type: ignore[index]
            below = int(found["below"] or 1)
            if radicand > MOST_RADICAND or below == 0:
                return None
            coefficient /= below
        terms.append((-coefficient if found["sign"] == "-" else coefficient, radicand))
        position = found.end()
    return canonical(terms) if terms else None


def surd_text(terms: Iterable[tuple[Fraction, int]]) -> str:
    """The sum in its usual form, ``3 + 2*sqrt(5)``; :func:`read_surd` reads it."""
    written = ""
    for radicand, coefficient in canonical(terms).items():
        size = abs(coefficient)
        root = "" if radicand == 1 else f"sqrt({radicand})"
        term = f"{size}*{root}" if root and size != 1 else root or str(size)
        sign = "-" if coefficient < 0 else "+"
        written += (f" {sign} " if written else sign.replace("+", "")) + term
    return written or "0"


def _split(radicand: int) -> tuple[int, int]:
    """The greatest square's root that divides ``radicand``, and what is left: 12 gives 2 and 3."""
    if radicand == 0:
        return 0, 1
    outside, inside, factor = 1, radicand, 2
    while factor * factor <= inside:
        while inside % (factor * factor) == 0:
            inside //= factor * factor
            outside *= factor
        factor += 1
    return outside, inside
