"""Drawing tokens: temperature, min-p, greedy, and random numbers that belong to a place, not to a batch.

The number that decides the token at a position comes from (seed of the conversation, position) alone, by a hash with a
counter: whoever else is in the batch, and in whatever order rows are served, changes nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mcpgym_rl.policy import PolicyError

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = (np.uint64(shift) for shift in (30, 27, 31, 11))


def uniforms(seeds: NDArray[np.uint64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """One number in [0, 1) for each (seed, position): SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), twice."""
    mixed = _mix(_mix(seeds + _GOLDEN) + (positions.astype(np.uint64) + np.uint64(1)) * _GOLDEN)
    return (mixed >> _S11).astype(np.float64) * 2.0**-53


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    value = (value ^ (value >> _S30)) * _FIRST
    value = (value ^ (value >> _S27)) * _SECOND
    return value ^ (value >> _S31)


def derived(seed: int, number: int) -> int:
    """The seed of the ``number``-th copy of a conversation with ``seed``."""
    with np.errstate(over="ignore"):
        value = _mix(np.array([(seed ^ 0x5851F42D4C957F2D) & 0xFFFFFFFFFFFFFFFF], np.uint64) + np.uint64(number + 1))
    return int(value[0])


def choose(
    logits: NDArray[np.float32], temperatures: NDArray[np.float64], min_p: float, numbers: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """One token a row, and its log-probability.

    Args:
        logits: (rows, vocabulary); used up.
        temperatures: (rows,); 0 takes the likeliest token.
        min_p: tokens less likely than ``min_p`` times the likeliest are not drawn.
        numbers: (rows,), each in [0, 1): which part of the distribution is meant.

    Returns:
        The tokens, and their log-probabilities at the row's temperature (at 1 where it is 0) in the whole distribution,
        before ``min_p`` takes its part away: what a trainer computes from the same logits.

    Raises:
        PolicyError: a row's logits are no numbers: the model is broken.
    """
    rows = np.arange(len(logits))
    greedy = temperatures <= 0.0
    cold, hot = bool(greedy.all()), not greedy.any()
    if not cold and not (temperatures == 1.0).all():
        logits *= (1.0 / np.where(greedy, 1.0, temperatures)).astype(np.float32)[:, None]
    tokens = np.zeros(len(logits), np.int64) if hot else logits.argmax(axis=1)
    top = logits.max(axis=1) if hot else logits[rows, tokens]
    if not np.isfinite(top).all():
        raise PolicyError("the model's output is not a number: its weights, or its training, are broken")
    logits -= top[:, None]
    shares = np.exp(logits)
    parts = _blocks(shares)
    sums = _sums(parts)
    totals = sums.sum(axis=1)
    if not cold:
        if min_p > 0.0:
            parts = np.where(parts >= np.float32(min_p), parts, np.float32(0.0))
            sums = _sums(parts)
        tokens = np.where(greedy, tokens, _inverse(parts, sums, numbers))
    return tokens, (logits[rows, tokens] - np.log(totals)).astype(np.float32)


def _blocks(shares: NDArray[np.float32]) -> NDArray[np.float32]:
    """``shares`` cut in about as many blocks as each has tokens, (rows, blocks, tokens of a block); padded with 0."""
    count, size = shares.shape
    root = max(1, int(np.sqrt(size)))
    width = next((width for width in range(root, root // 2, -1) if size % width == 0), 0)
    if not width:
        width = root
        padded = np.zeros((count, -(-size // width) * width), np.float32)
        padded[:, :size] = shares
        shares = padded
    return shares.reshape(count, -1, width)


def _sums(parts: NDArray[np.float32]) -> NDArray[np.float64]:
    """The sum of each block."""
    count, blocks, width = parts.shape
    made = parts.reshape(-1, width) @ np.ones(width, np.float32)
    return made.astype(np.float64).reshape(count, blocks)


def _inverse(parts: NDArray[np.float32], sums: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """The token at which the running sum of shares passes ``numbers`` of the whole, never one with no share.

    In two steps, first the block, then the token in it: much faster than one running sum over all.
    """
    rows = np.arange(len(parts))
    running = sums.cumsum(axis=1)
    wanted = numbers * running[:, -1]
    block = _first_above(running, wanted)
    inside = parts[rows, block].astype(np.float64).cumsum(axis=1)
    left = wanted - (running[rows, block] - sums[rows, block])
    made: NDArray[np.int64] = block * parts.shape[2] + _first_above(inside, left)
    return made


def _first_above(running: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where each running sum first exceeds ``wanted``, which rounding may have put a little past the end."""
    limit = np.minimum(wanted, np.nextafter(running[:, -1], -np.inf))
    found: NDArray[np.int64] = (running > limit[:, None]).argmax(axis=1)
    return found
