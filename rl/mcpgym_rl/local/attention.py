"""The parts of a Llama's arithmetic that are not matrices: norms, what a query sees, and attention for many rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcpgym_rl.local.backend import Ints

F = NDArray[np.float32]

_GATHER, _GROUP = 3, 4_000
"""What attending to a copied row costs, in tokens of a row that lies where it is, and what a second group costs."""
_TINY = 1e-30


def normal(hidden: F, epsilon: float) -> F:
    """Root-mean-square norm (arXiv 1910.07467) without its scale, which the next matrix holds."""
    squares = np.einsum("nd,nd->n", hidden, hidden)
    squares /= np.float32(hidden.shape[1])
    squares += np.float32(epsilon)
    made: F = hidden * (np.float32(1) / np.sqrt(squares))[:, None]
    return made


def shut_after(ends: Ints) -> tuple[int, F] | None:
    """What hides the tokens after each of ``ends``: from which place on, and 0 or -inf for each place from there.

    Args:
        ends: the last place each query sees, (rows,) or (rows, queries).
    """
    begin, end = int(ends.min()) + 1, int(ends.max()) + 1
    if begin == end:
        return None
    hidden = np.arange(begin, end) > ends[..., None]
    made = np.where(hidden, np.float32(-np.inf), np.float32(0))
    return begin, made[:, None, None] if made.ndim == 3 else made[:, None, None, None]


def alike(starts: Ints) -> list[Ints | slice]:
    """Rows in one group, or in two, where a few long conversations would make all others pay for their length."""
    count = len(starts)
    ordered = np.sort(starts)
    best, cut = count * (int(ordered[-1]) + 1), -1
    for long in (1, 2, 4, 8, 16, 32, 64, 128):
        if long * 2 > count:
            break
        limit = int(ordered[-long - 1])
        cost = count * (limit + 1) + _GATHER * long * (int(ordered[-1]) + 1) + _GROUP
        if cost < best:
            best, cut = cost, limit
    if cut < 0:
        return [slice(None)]
    return [np.flatnonzero(starts <= cut), np.flatnonzero(starts > cut)]


def attend(asked: F, keys: F, values: F, shut: tuple[int, F] | None) -> F:
    """Attention of a key head's queries together (grouped queries, arXiv 2305.13245), each to what it may see.

    Args:
        asked: scaled queries, (rows, key heads, query heads of each · queries, head width).
        keys: (rows, key heads, head width, tokens).
        values: (rows, key heads, tokens, head width).
        shut: see :func:`shut_after`.
    """
    scores = np.matmul(asked, keys)
    rows, heads, _, tokens = scores.shape
    if shut is not None:
        begin, hidden = shut
        scores.reshape(rows, heads, -1, hidden.shape[-2], tokens)[..., begin:] += hidden
    ones = np.ones(tokens, np.float32)
    highest = scores.reshape(rows, heads, -1).max(axis=2)  # of all queries of a row: one serves them all, as a rule
    lower = scores - highest[:, :, None, None]
    np.exp(lower, out=lower)
    totals = (lower.reshape(-1, tokens) @ ones).reshape(rows, heads, -1, 1)
    if not totals.min() > _TINY:  # as a rule, not always: a query with far lower scores needs its own highest
        lower = scores - scores.max(axis=3, keepdims=True)
        np.exp(lower, out=lower)
        totals = (lower.reshape(-1, tokens) @ ones).reshape(rows, heads, -1, 1)
    mixed: F = np.matmul(lower, values)
    mixed /= totals
    return mixed
