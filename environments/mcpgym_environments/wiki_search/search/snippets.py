"""The piece of a text that shows why it was found."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence

LONGEST = 200
"""Characters of a snippet."""
_SEARCHED = 40_000
"""Characters of a text in which words are looked for."""
_MARKS = 40
"""Places of a word that are weighed."""


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
    shape = text.lower() if text.isascii() else text.translate(_SHAPE)
    marks = sorted((start, which) for which, word in enumerate(words) for start in _places(shape, word))
    best, most = 0, 0
    room = longest * 3 // 4
    for place, (begin, _) in enumerate(marks):
        seen = {which for _, which in marks[place : bisect_right(marks, (begin + room, len(words)))]}
        if len(seen) > most:
            best, most = begin, len(seen)
    return max(0, best - longest // 6)


def _places(shape: str, word: str) -> Iterator[int]:
    """Where the word begins, or an inflection of it; the first of many."""
    stem = word if len(word) < 5 else word[: max(4, len(word) - 3)]
    start, found = shape.find(stem), 0
    while start >= 0 and found < _MARKS:
        end = start + len(stem)
        is_whole = len(word) >= 5 or not shape[end : end + 1].isalnum() or shape[end : end + 1] == "s"
        if is_whole and not shape[start - 1 : start].isalnum():
            yield start
            found += 1
        start = shape.find(stem, end)


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
