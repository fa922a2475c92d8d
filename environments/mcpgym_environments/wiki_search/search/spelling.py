"""Misspelt words: found by leaving out one letter, of what was written and of every word that names use.

Two words that become equal so differ by one letter left out, put in, changed or swapped with its neighbour (or by one
left out and one put in). It is the symmetric delete method of SymSpell (Garbe, 2012) with one deletion.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from zlib import crc32

SHORTEST = 4
LONGEST = 24
"""Letters of words that are corrected."""
_WORD = re.compile(r"[^\W\d_]+")
_ALIKE = 0.7


def words_of(folded: str) -> list[str]:
    """The words of a folded name that can be corrected to."""
    return [word for word in _WORD.findall(folded) if SHORTEST <= len(word) <= LONGEST]


def forms_of(word: str) -> set[int]:
    """The CRC-32 of a word and of all it becomes when one letter is left out."""
    forms = {word[:place] + word[place + 1 :] for place in range(len(word))}
    return {crc32(form.encode()) for form in (word, *forms)}


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that is most like ``word``, the first by the alphabet of equals; None if none is like it."""
    matcher = SequenceMatcher(b=word, autojunk=False)
    weighed = []
    for candidate in candidates:
        matcher.set_seq1(candidate)
        ratio = matcher.ratio() + (0.05 if candidate[0] == word[0] else 0)
        if ratio >= _ALIKE:
            weighed.append((-ratio, candidate))
    return min(weighed)[1] if weighed else None
