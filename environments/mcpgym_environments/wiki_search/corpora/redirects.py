"""Which titles lead to which pages, gathered before the pages are read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable


class Redirects:
    """Titles by the page that they lead to, in a file of SQLite's own that is gone afterwards: memory stays bounded."""

    def __init__(self, redirects: Iterable[tuple[str, str]]) -> None:
        """Take ``(target, title)`` pairs; each target is found again by the very same text."""
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA cache_size = -32000")
        self._file.execute("CREATE TABLE redirect (target TEXT, title TEXT, PRIMARY KEY (target, title)) WITHOUT ROWID")
        self._file.execute("BEGIN")
        self._file.executemany("INSERT OR IGNORE INTO redirect VALUES (?, ?)", redirects)

    def to(self, target: str) -> list[str]:
        """The titles that lead to ``target``, in order."""
        rows = self._file.execute("SELECT title FROM redirect WHERE target = ?", (target,))
        return [title for (title,) in rows]
