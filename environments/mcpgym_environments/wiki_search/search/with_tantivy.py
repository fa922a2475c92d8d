"""Tantivy, a full-text engine in Rust: for corpora that are large for SQLite. It is in the extra ``wiki``.

As with :mod:`fts5`, sections that have every word come before those that have some. https://github.com/quickwit-oss/tantivy
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mcpgym_environments.wiki_search.names import words_apart
from mcpgym_environments.wiki_search.search.engine import Found, Row
from mcpgym_environments.wiki_search.search.query import Query
from mcpgym_environments.wiki_search.sqlite_files import LibraryClosed, LibraryDamaged

TITLE_BOOST = 2.0
MEMORY = 128_000_000
"""Bytes that are indexed before a segment is written."""
TIED = 4_096
"""Equally good sections that are put in the order of their numbers; beyond, the first of all that match are taken."""
_ANALYZER = "mcpgym"
_EVERY = 5_000


class Tantivy:
    """The engine."""

    name = "tantivy"
    version = 1

    def build(self, folder: Path, rows: Iterable[Row], on_row: Callable[[int], None]) -> None:
        """Write the index."""
        tantivy = _tantivy()
        schema = tantivy.SchemaBuilder()
        schema.add_unsigned_field("number", fast=True)
        for name in ("title", "text"):
            schema.add_text_field(name, tokenizer_name=_ANALYZER)
        index = tantivy.Index(schema.build(), path=str(folder), reuse=False)
        index.register_tokenizer(_ANALYZER, _analyzer())
        writer = index.writer(MEMORY, 1)
        number = 0
        for number, title, heading, text, is_first in rows:
            document = tantivy.Document()
            document.add_unsigned("number", number)
            title = words_apart(title)
            document.add_text("title", title)
            document.add_text("text", "\n".join((title, "" if is_first else words_apart(heading), words_apart(text))))
            writer.add_document(document)
            if number % _EVERY == 0:
                on_row(number)
        writer.commit()
        writer.wait_merging_threads()
        on_row(number)

    def open(self, folder: Path) -> TantivyIndex:
        """Open it."""
        return TantivyIndex(folder)


class TantivyIndex:
    """An index that is open."""

    def __init__(self, folder: Path) -> None:
        self._library = _tantivy()
        try:
            index = self._library.Index.open(str(folder))
        except (ValueError, OSError) as error:
            raise LibraryDamaged(f"{folder} cannot be read ({error})") from error
        index.register_tokenizer(_ANALYZER, _analyzer())
        self._schema = index.schema
        self._searcher = index.searcher()

    def find(self, query: Query, limit: int, *, titles: bool = False) -> list[Found]:
        """See :class:`Index`."""
        occur = self._library.Occur
        words = [word for word in query.all_words if self.frequency(word)]
        if not words:
            return []
        in_titles = [(occur.Should, self._boosted(self._part((word,), "title"))) for word in words]
        if titles:
            return self._best(in_titles, limit)
        parts = [(word,) for word in query.words if word in words] + list(query.phrases)
        every = self._best([(occur.Must, self._part(part, "text")) for part in parts] + in_titles, limit)
        if len(every) >= limit or len(parts) == 1 == len(words):
            return every
        some = self._best(
            [(occur.Should, self._part((word,), "text")) for word in words] + in_titles, limit + len(every)
        )
        have = {found.number for found in every}
        lift = some[0].score if some else 0.0
        lifted = [Found(number, score + lift) for number, score in every]
        return (lifted + [found for found in some if found.number not in have])[:limit]

    def frequency(self, word: str) -> int:
        """See :class:`Index`."""
        if self._searcher is None:
            raise LibraryClosed("this library is closed")
        return min((self._searcher.doc_freq("text", term) for term in terms_of(word)), default=0)

    def close(self) -> None:
        """Give its files back."""
        self._searcher = None

    def _part(self, words: tuple[str, ...], field: str) -> Any:
        """A query for a word, or for a phrase."""
        query = self._library.Query
        terms = [term for word in words for term in terms_of(word)]
        if not terms:
            return query.empty_query()
        if len(terms) == 1:
            return query.term_query(self._schema, field, terms[0])
        return query.phrase_query(self._schema, field, terms)

    def _boosted(self, query: Any) -> Any:
        return self._library.Query.boost_query(query, TITLE_BOOST)

    def _best(self, clauses: list[tuple[Any, Any]], limit: int) -> list[Found]:
        """The best, best first, equals by their numbers.

        Tantivy leaves the order of equals to chance (how its segments were merged), so all equals of the last one are
        read before any is left out.
        """
        query = self._library.Query.boolean_query(clauses)
        wanted = limit
        while True:
            found = self._found(query, wanted + 1)
            if len(found) <= limit or found[-1].score < found[limit - 1].score or wanted >= limit + TIED:
                break
            wanted = min(wanted * 8, limit + TIED)
        tie = found[limit - 1].score if len(found) >= limit else None
        if tie is not None and len(found) > wanted and found[-1].score == tie:
            better = [hit for hit in found if hit.score > tie]
            have = {hit.number for hit in better}
            first = self._found(query, limit + len(better), by_number=True)
            found = better + [Found(hit.number, tie) for hit in first if hit.number not in have]
        return sorted(found, key=lambda hit: (-hit.score, hit.number))[:limit]

    def _found(self, query: Any, count: int, *, by_number: bool = False) -> list[Found]:
        searcher = self._searcher
        if searcher is None:
            raise LibraryClosed("this library is closed")
        if by_number:
            order = self._library.Order.Asc
            hits = searcher.search(query, count, count=False, order_by_field="number", order=order).hits
        else:
            hits = searcher.search(query, count, count=False).hits
        numbers = searcher.fast_field_values("number", [address for _, address in hits])
        # rounded: the sum of a score's parts differs in its last digits with the order of the segments
        return [Found(number, round(score, 3)) for number, (score, _) in zip(numbers, hits, strict=True)]


@functools.lru_cache(maxsize=50_000)
def terms_of(word: str) -> tuple[str, ...]:
    """What the index makes of a word: its stem."""
    return tuple(_analyzer().analyze(word))


@functools.lru_cache(maxsize=1)
def _analyzer() -> Any:
    tantivy = _tantivy()
    kinds = tantivy.Filter
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for kind in (kinds.remove_long(60), kinds.lowercase(), kinds.ascii_fold(), kinds.stemmer("english")):
        builder = builder.filter(kind)
    return builder.build()


def _tantivy() -> Any:
    import tantivy

    return tantivy
