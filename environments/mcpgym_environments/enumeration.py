"""Made data without repetition: tasks are numbered places in a finite space, so splits are disjoint by construction."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd


def place(split: str, index: int, size: int) -> int:
    """Which of ``size`` places the task at ``index`` of ``split`` has; neighbours lie far apart.

    ``train`` takes places from the front of a fixed order of all of them, and ``test`` from the back: as long as both
    together have at most ``size`` tasks, no place is taken twice.
    """
    position = index if split == "train" else size - 1 - index
    return (position + 1) * stride(size) % size


def digits(number: int, bases: Sequence[int]) -> list[int]:
    """``number`` with one digit per base, the first the fastest; numbers below the bases' product are all different."""
    written = []
    for base in bases:
        number, digit = divmod(number, base)
        written.append(digit)
    return written


def stride(size: int) -> int:
    """A step near √2 - 1 of ``size``: a few of them spread well, and ``size`` of them visit every place once."""
    step = max(1, round(size * 0.4142135624))
    while gcd(step, size) != 1:
        step += 1
    return step
