"""Numbers as they are submitted, read exactly: no float is ever made of one."""

from __future__ import annotations

import re
from fractions import Fraction

MOST_EXPONENT = 999
"""The greatest power of ten that is worked out; a number with a greater one is not read."""

_GROUPED = r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?: [0-9]{3})+|[0-9]{1,3}(?:'[0-9]{3})+|[0-9]{1,3}(?:_[0-9]{3})+"
_WHOLE = rf"(?:{_GROUPED}|[0-9]+)"
_DECIMAL = re.compile(
    rf"(?P<sign>[+-] ?)?(?:(?P<whole>{_WHOLE})(?:\.(?P<part>[0-9]*))?|\.(?P<bare>[0-9]+))"
    r"(?:[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_RATIO = re.compile(
    r"(?P<sign>[+-] ?)?(?P<above>[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+) ?/ ?(?P<below>[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)"
)
_LATEX_RATIO = re.compile(r"([+-] ?)?\\[dt]?frac ?\{ ?([0-9]+) ?\} ?\{ ?([0-9]+) ?\}")
_SEPARATORS = re.compile(r"[,' _]")
_SIGNS = str.maketrans(
    {"−": "-", "﹣": "-", "－": "-", "＋": "+", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "⁄": "/"}
)


def read_number(text: str) -> Fraction | None:
    """The number that the whole of ``text`` is; None where it is anything else.

    ``-1204``, ``1,204``, ``1 204``, ``1'204``, ``1_204``, ``1204.0``, ``1.204e3``, ``2408/2`` and ``\\frac{2408}{2}``
    are all read; a comma is never a decimal point. Only the digits 0 to 9 count. What is not finite is no number, and
    neither is one whose exponent is beyond ``MOST_EXPONENT``.
    """
    text = text.translate(_SIGNS).strip()
    found = _DECIMAL.fullmatch(text)
    if found is not None:
        whole, part = _SEPARATORS.sub("", found["whole"] or ""), found["part"] or found["bare"] or ""
        exponent = int(found["exponent"] or 0) - len(part)
        digits, size = _integer(whole + part), 10 ** abs(exponent)
        value = Fraction(digits * size) if exponent >= 0 else Fraction(digits, size)
        return -value if "-" in (found["sign"] or "") else value
    found = _RATIO.fullmatch(_LATEX_RATIO.sub(r"\1\2/\3", text, count=1))
    if found is None:
        return None
    below = _integer(found["below"].replace(",", ""))
    if below == 0:
        return None
    value = Fraction(_integer(found["above"].replace(",", "")), below)
    return -value if "-" in (found["sign"] or "") else value


def _integer(digits: str) -> int:
    """``int(digits)``, whatever limit the interpreter has for the number of digits."""
    value = 0
    for start in range(0, len(digits), 600):
        piece = digits[start : start + 600]
        value = value * 10 ** len(piece) + int(piece)
    return value
