"""Random columns that are the same on every machine: splitmix64 over counters, no generator's state."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcpgym.tasks import derive_seed

Column = NDArray[np.int64]


class Draws:
    """Columns of random numbers, each named by a label: a new column elsewhere changes none of the others.

    Only operations that IEEE 754 rounds exactly are used (no logarithms), so that no platform differs in a last digit.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def uniform(self, label: str, size: int) -> NDArray[np.float64]:
        """Numbers in [0, 1)."""
        start = np.uint64(derive_seed(self._seed, label))
        with np.errstate(over="ignore"):
            mixed = start + np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed ^= mixed >> np.uint64(31)
        return np.asarray((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53)

    def integers(self, label: str, low: int | Column, high: int | Column, size: int) -> Column:
        """Whole numbers from ``low`` to ``high`` - 1; ``low`` and ``high`` may differ from row to row."""
        return np.asarray(low + np.floor(self.uniform(label, size) * (np.asarray(high) - low)).astype(np.int64))

    def sizes(self, label: str, low: int, doublings: int, size: int) -> Column:
        """Whole numbers from ``low`` to ``low`` · 2^``doublings``, each doubling as likely as another."""
        scale = np.left_shift(np.int64(low), self.integers(f"{label} doubling", 0, doublings, size))
        return np.asarray(np.floor(scale * (1.0 + self.uniform(label, size))).astype(np.int64))

    def chance(self, label: str, share: float, size: int) -> NDArray[np.bool_]:
        """True for about ``share`` of the rows."""
        return np.asarray(self.uniform(label, size) < share)

    def order(self, label: str, size: int) -> Column:
        """A shuffled 0 … ``size`` - 1."""
        return np.argsort(self.uniform(label, size), kind="stable")
