"""The piece of a text that shows why it was found."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice

LONGEST = 200
"""Characters of a snippet."""
_SEARCHED = 40_000
"""Characters of a text in which words are looked for."""
_MARKS = 400
"""Places of words that are weighed."""


class _Shape(dict[int, str]):
    """Characters without accents and in small letters, one for one, so that places stay."""

    def __missing__(self, code: int) -> str:
        base = unicodedata.normalize("NFKD", chr(code))[0].lower()
        made = base if len(base) == 1 else chr(code)
        if len(self) < 70_000:
            self[code] = made
        return made


_SHAPE = _Shape()


def snippet(text: str, words: Sequence[str], longest: int = LONGEST) -> str:
    """At most ``longest`` characters of ``text`` with as many different ``words`` as possible, cut at words.

    Left-out text is marked by ``…``; line breaks become spaces. Without any of the words it is the text's beginning.
    """
    text = text[:_SEARCHED]
    start = _best_start(text, words, longest)
    return _cut(text, start, longest)


def _best_start(text: str, words: Sequence[str], longest: int) -> int:
    """Where the window begins: at the place from which most different words follow, with some text before it."""
    if not words or len(text) <= longest:
        return 0
    marks = [(found.start(), found.end(), found.lastindex or 0) for found in islice(_marks(text, words), _MARKS)]
    best, most = 0, 0
    room = longest * 3 // 4
    for place, (begin, _, _) in enumerate(marks):
        seen: set[int] = set()
        for _, end, which in marks[place:]:
            if end > begin + room:
                break
            seen.add(which)
        if len(seen) > most:
            best, most = begin, len(seen)
    return max(0, best - longest // 6)


def _marks(text: str, words: Sequence[str]) -> Iterator[re.Match[str]]:
    """The places of words in a text; a place's ``lastindex`` says which word, from 1."""
    shape = text.lower() if text.isascii() else text.translate(_SHAPE)
    return _pattern(tuple(words)).finditer(shape)


@functools.lru_cache(maxsize=256)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    pattern = "|".join(f"({_stem(word)})" for word in words)
    return re.compile(rf"(?<![^\W_])(?:{pattern})")


def _stem(word: str) -> str:
    """A pattern for a word and its inflections."""
    kept = word if len(word) < 5 else word[: max(4, len(word) - 3)]
    return re.escape(kept) + (r"\w*" if len(word) >= 5 else r"s?\b")


def _cut(text: str, start: int, longest: int) -> str:
    room = longest - 4  # for the marks at both ends
    if start > 0:
        gap = re.compile(r"\s").search(text, start, start + 40)
        start = gap.end() if gap else start
        if len(text) - start < room // 2:
            start = max(0, len(text) - room)
            gap = re.compile(r"\s").search(text, start, start + 40)
            start = gap.end() if gap and start else start
    piece = text[start : start + room]
    if start + room < len(text):
        last = max(piece.rfind(" "), piece.rfind("\n"))
        piece = piece[:last] if last > room // 2 else piece
        piece = piece.rstrip() + " …"
    piece = " ".join(piece.split())
    return f"… {piece}"[:longest] if start > 0 else piece[:longest]
