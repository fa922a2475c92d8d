"""SQLite's own full-text search: nothing to install, quick up to some ten thousand pages and bounded beyond.

A query is tried with all of its words first and then, where that finds too little, with any of its rarest: those
whose sections together are few enough to be ranked in time. What bounds a search is how much it reads, never a clock:
on a busy machine, too, equal queries find the same. SQLite FTS5's manual: https://sqlite.org/fts5.html.
"""

from __future__ import annotations

import functools
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from mcpgym_environments.wiki_search.names import words_apart
from mcpgym_environments.wiki_search.search.engine import Found, Row
from mcpgym_environments.wiki_search.search.query import Query
from mcpgym_environments.wiki_search.sqlite_files import DAMAGED, Pool, writing

TOKENIZER = "porter unicode61 remove_diacritics 2"
RANKED = 10_000
"""Sections that one query ranks: about 20 milliseconds of work."""
READ = 150_000
"""Places of words that one query reads for its ranking: about 40 milliseconds of work."""
_WEIGHTS = "6.0, 2.0, 1.0"
_FILE = "fts5.sqlite"
_BATCH = 2_000


class Fts5:
    """The engine."""

    name = "fts5"
    version = 1

    def build(self, folder: Path, rows: Iterable[Row], on_row: Callable[[int], None]) -> None:
        """Write the index."""
        with writing(folder / _FILE) as connection:
            connection.execute(
                f"CREATE VIRTUAL TABLE section USING fts5(title, heading, text, content='', tokenize='{TOKENIZER}')"
            )
            connection.execute("INSERT INTO section(section, rank) VALUES('hashsize', 67108864)")
            for batch in _batches(_indexed(rows)):
                connection.executemany("INSERT INTO section(rowid, title, heading, text) VALUES(?, ?, ?, ?)", batch)
                on_row(batch[-1][0])
            connection.execute("INSERT INTO section(section) VALUES('optimize')")
            connection.execute("CREATE VIRTUAL TABLE vocabulary USING fts5vocab(section, row)")

    def open(self, folder: Path) -> Fts5Index:
        """Open it."""
        (folder / _FILE).stat()  # its absence shows here, not at the first search
        return Fts5Index(folder / _FILE)


class Fts5Index:
    """An index that is open."""

    def __init__(self, path: Path) -> None:
        self._pool = Pool(path, path.parent.parent / DAMAGED)
        self._frequencies: dict[str, int] = {}

    def find(self, query: Query, limit: int, *, titles: bool = False) -> list[Found]:
        """See :class:`Index`."""
        rarest = self._rarest(query)
        if titles or not rarest:
            return self._rank(" OR ".join(map(_quoted, rarest)), limit, titles=titles)
        parts, is_ranked = self._affordable(query)
        every = self._rank(" AND ".join(map(_quoted, parts)), limit, is_ranked=is_ranked)
        if len(every) >= limit or (len(parts) == 1 and parts == rarest):
            return every
        some = self._rank(" OR ".join(map(_quoted, rarest)), limit + len(every), is_ranked=is_ranked)
        have = {found.number for found in every}
        lift = some[0].score if some else 0.0
        lifted = [Found(number, score + lift) for number, score in every]
        return (lifted + [found for found in some if found.number not in have])[:limit]

    def frequency(self, word: str) -> int:
        """See :class:`Index`."""
        known = self._frequencies.get(word)
        if known is None:
            known = min(map(self._documents, terms_of(word)), default=0)
            if len(self._frequencies) < 100_000:
                self._frequencies[word] = known
        return known

    def close(self) -> None:
        """Give its files back."""
        self._pool.close()

    def _documents(self, term: str) -> int:
        rows = self._pool.rows("SELECT doc FROM vocabulary WHERE term = ?", (term,))
        return int(rows[0][0]) if rows else 0

    def _affordable(self, query: Query) -> tuple[list[str], bool]:
        """The words and phrases that a section must have, and whether they can be ranked.

        For its ranking SQLite reads all the places of every word, so that the most frequent are left out.
        """
        known = [(self.frequency(word), word) for word in query.words]
        known = [(frequency, word) for frequency, word in known if frequency]
        known += [(sum(map(self.frequency, phrase)), " ".join(phrase)) for phrase in query.phrases]
        known.sort()
        chosen = [known[0][1]]
        read = known[0][0]
        for frequency, part in known[1:]:
            read += frequency
            if read > READ:
                break
            chosen.append(part)
        return chosen, known[0][0] <= READ

    def _rarest(self, query: Query) -> list[str]:
        """The words, rarest first, as long as their sections together can be ranked; always one."""
        known = sorted({(n, word) for word in query.all_words if (n := self.frequency(word))})
        chosen: list[str] = []
        room = RANKED
        for frequency, word in known:
            room -= frequency
            if chosen and room < 0:
                break
            chosen.append(word)
        return chosen

    def _rank(self, match: str, limit: int, *, titles: bool = False, is_ranked: bool = True) -> list[Found]:
        if not match:
            return []
        score = f"bm25(section, {_WEIGHTS})" if is_ranked else "0.0"
        sql = (
            f"SELECT number, score FROM (SELECT rowid AS number, {score} AS score FROM section "
            f"WHERE section MATCH ? LIMIT {RANKED}) ORDER BY score, number LIMIT ?"
        )
        match = f"title : ({match})" if titles else match
        return [Found(number, -score) for number, score in self._pool.rows(sql, (match, limit))]


def _quoted(part: str) -> str:
    """A word or phrase as FTS5 takes it; it has letters and digits only."""
    return f'"{part}"'


def _indexed(rows: Iterable[Row]) -> Iterator[tuple[int, str, str, str]]:
    for number, title, heading, text, is_first in rows:
        yield number, words_apart(title), "" if is_first else words_apart(heading), words_apart(text)


def _batches(rows: Iterator[tuple[int, str, str, str]]) -> Iterator[list[tuple[int, str, str, str]]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch


_words = threading.local()


@functools.lru_cache(maxsize=50_000)
def terms_of(word: str) -> tuple[str, ...]:
    """What the index makes of a word: its stem, as SQLite's tokenizer cuts it."""
    connection = getattr(_words, "connection", None)
    if connection is None:
        connection = _words.connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.execute(f"CREATE VIRTUAL TABLE word USING fts5(text, content='', tokenize='{TOKENIZER}')")
        connection.execute("CREATE VIRTUAL TABLE occurrence USING fts5vocab(word, instance)")
    connection.execute("BEGIN")
    try:
        connection.execute("INSERT INTO word(rowid, text) VALUES(1, ?)", (word,))
        return tuple(term for (term,) in connection.execute("SELECT term FROM occurrence ORDER BY offset"))
    finally:
        connection.execute("ROLLBACK")
