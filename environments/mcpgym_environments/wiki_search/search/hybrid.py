"""Words and meaning together: a page is found by what it says, or by what its beginning is about.

Titles and first paragraphs become vectors (:mod:`embedding`), and a query's is compared with all of them. What the
words find and what the vectors find is merged by reciprocal rank (Cormack et al., SIGIR 2009). Making the vectors takes
about 20 milliseconds a page, so this is for corpora up to some hundred thousand; it is in the extra ``wiki-dense``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mcpgym_environments.wiki_search.search.embedding import DIMENSIONS, Embedder
from mcpgym_environments.wiki_search.search.engine import Engine, Found, Index, Row
from mcpgym_environments.wiki_search.search.query import Query
from mcpgym_environments.wiki_search.sqlite_files import LibraryDamaged

BEGINNING = 250
"""Characters of a page's first section that its vector is made of, after the title."""
RANK_OFFSET = 60
"""Cormack's k: how much less the first rank is worth than it would be alone."""
_BATCH = 256
_VECTORS = "vectors.npy"
_FIRSTS = "firsts.npy"


class Hybrid:
    """The engine, over another that finds words."""

    name = "hybrid"
    version = 1

    def __init__(self, words: Engine) -> None:
        self._words = words

    def build(self, folder: Path, rows: Iterable[Row], on_row: Callable[[int], None]) -> None:
        """Write both indexes."""
        begins: list[tuple[int, str]] = []

        def noted() -> Iterator[Row]:
            for row in rows:
                if row.is_first:
                    title = row.title.partition("\n")[0]
                    begins.append((row.number, f"{title}. {row.text[:BEGINNING].partition(chr(10) * 2)[0]}"))
                yield row

        self._place(folder).mkdir()
        self._words.build(self._place(folder), noted(), lambda number: None)
        embedder = Embedder.shared()
        vectors = np.lib.format.open_memmap(
            folder / _VECTORS, mode="w+", dtype=np.float32, shape=(len(begins), DIMENSIONS)
        )
        for start in range(0, len(begins), _BATCH):
            batch = begins[start : start + _BATCH]
            vectors[start : start + len(batch)] = embedder.vectors([text for _, text in batch])
            on_row(batch[-1][0])
        vectors.flush()
        np.save(folder / _FIRSTS, np.array([number for number, _ in begins], np.int64))

    def open(self, folder: Path) -> HybridIndex:
        """Open them."""
        return HybridIndex(folder, self._words.open(self._place(folder)))

    def _place(self, folder: Path) -> Path:
        return folder / f"{self._words.name}-{self._words.version}"


class HybridIndex:
    """Both indexes, open."""

    def __init__(self, folder: Path, words: Index) -> None:
        self._words = words
        try:
            self._firsts: NDArray[np.int64] = np.load(folder / _FIRSTS)
            self._vectors: NDArray[np.float32] = np.load(folder / _VECTORS, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise LibraryDamaged(f"{folder} cannot be read ({error})") from error

    def find(self, query: Query, limit: int, *, titles: bool = False) -> list[Found]:
        """See :class:`Index`. A page that only its meaning found is shown by its first section."""
        by_words = self._words.find(query, limit, titles=titles)
        if titles:
            return by_words
        shown: dict[int, int] = {}
        scores: dict[int, float] = {}
        for found in by_words:
            page = int(np.searchsorted(self._firsts, found.number, side="right")) - 1
            if page not in shown:
                shown[page] = found.number
                scores[page] = 1 / (RANK_OFFSET + len(shown))
        for rank, page in enumerate(self._nearest(query.text, max(10, limit // 2)), start=1):
            shown.setdefault(page, int(self._firsts[page]))
            scores[page] = scores.get(page, 0.0) + 1 / (RANK_OFFSET + rank)
        order = sorted(scores, key=lambda page: (-scores[page], page))
        return [Found(shown[page], scores[page]) for page in order[:limit]]

    def frequency(self, word: str) -> int:
        """See :class:`Index`."""
        return self._words.frequency(word)

    def close(self) -> None:
        """Give its files back."""
        self._words.close()

    def _nearest(self, text: str, count: int) -> list[int]:
        """The pages (by their places, from 0) whose beginnings mean most nearly what ``text`` does."""
        vector = Embedder.shared().vectors([text])[0]
        likeness = np.round(self._vectors @ vector, 5)
        count = min(count, len(likeness))
        least = np.partition(likeness, len(likeness) - count)[len(likeness) - count]
        found = np.flatnonzero(likeness >= least)  # in the order of pages, as equals are to be
        order: list[int] = found[np.argsort(-likeness[found], kind="stable")].tolist()
        return order[:count]
