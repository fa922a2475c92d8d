"""What computes for the engine: rows of keys and values that chunks of tokens are appended to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Logits = Any
"""Scores of the next token, (rows, vocabulary): a NumPy array or a torch tensor, whatever the backend's own."""


class Backend(Protocol):
    """A model with a cache of its own for each row.

    A row holds the keys and values of one conversation's first tokens; whoever uses it keeps count of them. Rows are
    made by :meth:`reserve`, and what they hold stays until it is written over.
    """

    vocabulary: int
    """How many tokens there are."""
    positions: int
    """How many tokens a conversation may have."""
    small: bool
    """Whether a step takes so little that handing it to a thread would cost more."""

    def reserve(self, rows: int, tokens: int) -> None:
        """Have exactly ``rows`` rows, of at least ``tokens`` tokens; what those that remain hold stays."""
        ...

    def row_bytes(self, tokens: int) -> int:
        """What one row of ``tokens`` tokens takes."""
        ...

    def append(self, rows: Sequence[int], starts: Sequence[int], chunks: Sequence[Sequence[int]]) -> Logits:
        """Append a chunk to each of ``rows``, which hold ``starts`` tokens; scores after each chunk's last token."""
        ...

    def step(self, rows: Ints, tokens: Ints, starts: Ints) -> Logits:
        """Append one token to each of ``rows``, which ascend; scores after it."""
        ...

    def choose(
        self, logits: Logits, temperatures: Floats, min_p: float, uniforms: Floats
    ) -> tuple[Ints, NDArray[np.float32]]:
        """Draw one token a row, and its log-probability; see :func:`mcpgym_rl.local.sampling.choose`."""
        ...

    def take(self, logits: Logits, places: Sequence[int]) -> Logits:
        """Some rows of ``logits``, copied."""
        ...

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Give row ``target`` the first ``tokens`` tokens of row ``source``."""
        ...

    def save(self, row: int, tokens: int) -> Any:
        """A copy of the first ``tokens`` tokens of a row, for :meth:`load`."""
        ...

    def load(self, row: int, saved: Any) -> None:
        """Give a row what was saved."""
        ...

    def refresh(self) -> bool:
        """Take the weights as they are now, where they are somebody else's; whether they may have changed."""
        ...
