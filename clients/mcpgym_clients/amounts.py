"""Amounts of money as people read them."""

from __future__ import annotations

import math


def dollars(usd: float) -> str:
    """An amount to the cent; below a dollar, to two digits that say something."""
    if usd == 0 or usd >= 1:
        return f"${usd:,.2f}"
    return f"${usd:.{max(2, 1 - math.floor(math.log10(usd)))}f}"
