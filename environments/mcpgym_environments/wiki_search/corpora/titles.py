"""Two pages of one title: both are kept, told apart, and noted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import replace
from hashlib import blake2b

from mcpgym_environments.wiki_search.pages import Page, Problems


class Taken:
    """The titles that are taken so far, by their hashes, in a file of SQLite's own that is gone afterwards.

    Memory stays bounded, however many there are.
    """

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = OFF")
        self._file.execute("PRAGMA cache_size = -32000")
        self._file.execute("CREATE TABLE taken (title INTEGER PRIMARY KEY)")
        self._file.execute("BEGIN")

    def take(self, title: str) -> bool:
        """Whether ``title`` was free; it is not any more."""
        number = int.from_bytes(blake2b(title.encode(), digest_size=8).digest(), "big", signed=True)
        return self._file.execute("INSERT OR IGNORE INTO taken VALUES (?)", (number,)).rowcount == 1

    def own(self, title: str, qualifier: str) -> str:
        """``title`` if it was free, else with ``qualifier`` (and a number where even that is taken) in brackets."""
        if self.take(title):
            return title
        name, count = f"{title} ({qualifier})", 1
        while not self.take(name):
            count += 1
            name = f"{title} ({qualifier}, {count})"
        return name


def told_apart(pages: Iterable[Page], problems: Problems) -> Iterator[Page]:
    """``pages``, each under a title of its own: a later page of a taken title gets its key in brackets."""
    taken = Taken()
    for page in pages:
        title = taken.own(page.title, page.key)
        if title != page.title:
            problems.note("duplicate title", f"{page.title!r} again in {page.key}: there as {title!r}")
            page = renamed(page, title)
        yield page


def renamed(page: Page, title: str) -> Page:
    """``page`` under ``title``; its old title stays as an alias, and what leads to that title does not lead here."""
    lead, *others = page.sections
    return replace(
        page,
        title=title,
        sections=(replace(lead, heading=title), *others),
        redirects=(),
        aliases=tuple(dict.fromkeys((page.title, *page.aliases))),
    )
