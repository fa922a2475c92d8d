"""How alike two texts are: the length of their longest common subsequence."""

from __future__ import annotations


def common_subsequence_length(first: str, second: str) -> int:
    """The length of the longest text that is left of both when characters are struck out.

    Bit-parallel (Crochemore and others, 2001; Hyyrö, 2004): a big integer holds a row of the usual table, one bit per
    character of ``first``, and each character of ``second`` costs a few operations on it.
    """
    places: dict[str, int] = {}
    for index, character in enumerate(first):
        places[character] = places.get(character, 0) | 1 << index
    row = everything = (1 << len(first)) - 1
    for character in second:
        matched = row & places.get(character, 0)
        row = (row + matched | row - matched) & everything
    return len(first) - row.bit_count()


def similarity(first: str, second: str) -> float:
    """Twice the common subsequence over both lengths: 1.0 for equal texts, 0.0 where nothing is in common."""
    if first == second:
        return 1.0
    return 2 * common_subsequence_length(first, second) / (len(first) + len(second))
