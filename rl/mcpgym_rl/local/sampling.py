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
    if not greedy.any() and (temperatures == temperatures[0]).all():
        if temperatures[0] != 1.0:
            logits *= np.float32(1.0 / temperatures[0])
    elif not greedy.all():
        logits *= (1.0 / np.where(greedy, 1.0, temperatures)).astype(np.float32)[:, None]
    top = logits.max(axis=1)
    if not np.isfinite(top).all():
        raise PolicyError("the model's output is not a number: its weights, or its training, are broken")
    tokens = logits.argmax(axis=1) if greedy.any() else np.zeros(len(logits), np.int64)
    logits -= top[:, None]
    chosen = logits if min_p > 0.0 else None
    shares = np.exp(logits)
    totals = shares.sum(axis=1)
    if not greedy.all():
        drawn = shares if chosen is None else np.where(shares >= np.float32(min_p), shares, np.float32(0.0))
        tokens = np.where(greedy, tokens, _inverse(drawn, numbers))
    return tokens, logits[rows, tokens] - np.log(totals)


def _inverse(shares: NDArray[np.float32], numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """The token at which the running sum of ``shares`` passes ``numbers`` of its whole, never one with no share.

    In two levels, blocks and tokens in them: much faster than one running sum over all.
    """
    count, size = shares.shape
    width = max(8, int(np.sqrt(size)))
    blocks = -(-size // width)
    if blocks * width != size:
        padded = np.zeros((count, blocks * width), np.float32)
        padded[:, :size] = shares
        shares = padded
    parts = shares.reshape(count, blocks, width)
    rows = np.arange(count)
    sums = parts.sum(axis=2, dtype=np.float32).astype(np.float64)
    running = sums.cumsum(axis=1)
    wanted = numbers * running[:, -1]
    block = _first_above(running, wanted)
    inside = parts[rows, block].astype(np.float64).cumsum(axis=1)
    left = wanted - (running[rows, block] - sums[rows, block])
    return block * width + _first_above(inside, left)


def _first_above(running: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    """Where each running sum first exceeds ``wanted``, which rounding may have put a little past the end."""
    limit = np.minimum(wanted, np.nextafter(running[:, -1], -np.inf))
    found: NDArray[np.int64] = (running > limit[:, None]).argmax(axis=1)
    return found
