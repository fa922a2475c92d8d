"""The one SQLite file that every corpus becomes: pages, sections, links, names, and what was wrong on the way.

It is the source of truth; search indexes beside it are made from it and can be made again. Tables:

- ``page(number, key, title, first, sections)``: ``number`` counts from 1 in the corpus' order; ``first`` is the number
  of its first section, and its sections follow.
- ``section(number, page, heading, level, text)``.
- ``link(page, position, target, title)``: ``target`` is a page's number, or null with the ``title`` that led nowhere.
- ``alias(page, name)`` and ``redirect(page, name)``.
- ``name(folded, rank, page)``: every name as :func:`names.name_key` folds it; rank 0 is a title, 1 an alias, 2 a
  redirect.
- ``word(number, word)`` and ``deletion(form, word)``: words of names, and the CRC-32 of each with one letter left out,
  for misspelt ones.
- ``problem(kind, count, examples)``; ``meta(name, value)``: ``schema``, ``about``, ``fingerprint``, ``content`` (a hash
  over all pages), ``pages``, ``sections``.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.kept import Kept, Updatable
from mcpgym_environments.wiki_search.names import name_key
from mcpgym_environments.wiki_search.pages import Corpus, Page, Problems, Section
from mcpgym_environments.wiki_search.search.engine import Row
from mcpgym_environments.wiki_search.search.spelling import forms_of, words_of
from mcpgym_environments.wiki_search.sqlite_files import LibraryDamaged, Pool, writing

SCHEMA = 1
"""The version of the tables; a file of another version is built anew."""
_BATCH = 500
_TABLES = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE problem(kind TEXT PRIMARY KEY, count INTEGER NOT NULL, examples TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE page(number INTEGER PRIMARY KEY, key TEXT NOT NULL, title TEXT NOT NULL, first INTEGER NOT NULL,
  sections INTEGER NOT NULL);
CREATE TABLE section(number INTEGER PRIMARY KEY, page INTEGER NOT NULL, heading TEXT NOT NULL, level INTEGER NOT NULL,
  text TEXT NOT NULL);
CREATE TABLE link(page INTEGER NOT NULL, position INTEGER NOT NULL, target INTEGER, title TEXT,
  PRIMARY KEY(page, position)) WITHOUT ROWID;
CREATE TABLE alias(page INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY(page, name)) WITHOUT ROWID;
CREATE TABLE redirect(page INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY(page, name)) WITHOUT ROWID;
CREATE TABLE name(folded TEXT NOT NULL, rank INTEGER NOT NULL, page INTEGER NOT NULL,
  PRIMARY KEY(folded, rank, page)) WITHOUT ROWID;
CREATE TABLE word(number INTEGER PRIMARY KEY, word TEXT NOT NULL);
CREATE TABLE deletion(form INTEGER NOT NULL, word INTEGER NOT NULL, PRIMARY KEY(form, word)) WITHOUT ROWID;
CREATE TEMP TABLE new_link(page INTEGER, position INTEGER, title TEXT, folded TEXT);
CREATE TEMP TABLE new_name(folded TEXT, rank INTEGER, page INTEGER);
CREATE TEMP TABLE new_form(form INTEGER, word INTEGER);
"""
_FINISH = """
CREATE UNIQUE INDEX page_by_key ON page(key);
INSERT OR IGNORE INTO name SELECT folded, rank, page FROM new_name ORDER BY folded, rank, page;
INSERT OR IGNORE INTO deletion SELECT form, word FROM new_form ORDER BY form, word;
"""
_LINKS = """
INSERT INTO link SELECT page, position, target, iif(target IS NULL, title, NULL) FROM (
  SELECT page, position, title,
    (SELECT name.page FROM name WHERE name.folded = new_link.folded ORDER BY rank, page LIMIT 1) AS target
  FROM new_link)
"""


def write_pages(
    path: Path, corpus: Corpus, on_page: Callable[[int], None] = lambda done: None, kept: Kept | None = None
) -> int:
    """Read ``corpus`` into a new file at ``path``; gives the number of pages. ``on_page`` hears how many are done.

    ``kept`` is what an earlier build of an updatable corpus left.
    """
    problems = Problems()
    with writing(path) as connection:
        _create(connection)
        writer = _Writer(connection, problems)
        if kept is not None and isinstance(corpus, Updatable):
            pages = iter(corpus.pages_from(kept, problems))
        else:
            pages = iter(corpus.pages(problems))
        while batch := list(islice(pages, _BATCH)):
            writer.add(batch)
            on_page(writer.pages)
        writer.finish()
        if not writer.pages:
            said = "; ".join(f"{kind}: {examples[0]}" for kind, examples in problems.examples.items())
            what = corpus.about.get("source") or corpus.about.get("title") or "the corpus"
            raise ConfigurationError(f"{what} has no pages{f' ({said})' if said else ''}")
        connection.executemany(
            "INSERT INTO problem VALUES(?, ?, ?)",
            [(kind, n, json.dumps(problems.examples.get(kind, []))) for kind, n in problems.counts.items()],
        )
        meta = {
            "schema": str(SCHEMA),
            "about": json.dumps(dict(corpus.about)),
            "fingerprint": corpus.fingerprint,
            "content": writer.hash.hexdigest(),
            "pages": str(writer.pages),
            "sections": str(writer.sections),
        }
        connection.executemany("INSERT INTO meta VALUES(?, ?)", meta.items())
    return writer.pages


def _create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):
        connection.execute(statement)


class _Writer:
    """Numbers pages and sections in the order they come and writes them, batch by batch."""

    def __init__(self, connection: sqlite3.Connection, problems: Problems) -> None:
        self.pages = 0
        self.sections = 0
        self.hash = hashlib.sha256()
        self._connection = connection
        self._problems = problems
        self._keys: set[str] = set()
        self._words: set[str] = set()

    def add(self, batch: list[Page]) -> None:
        """Write some pages. A second page of one key is left out, and said."""
        pages, sections, links, names = [], [], [], []
        others: dict[str, list[tuple[int, str]]] = {"alias": [], "redirect": []}
        for given in batch:
            page = self._readable(given)
            if page.key in self._keys:
                self._problems.note("key used twice, second page left out", f"{page.key} ({page.title})")
                continue
            self._keys.add(page.key)
            self.hash.update(_bytes_of(page))
            self.pages += 1
            number = self.pages
            parts = page.sections or (Section(page.title, 1, ""),)
            pages.append((number, page.key, page.title, self.sections + 1, len(parts)))
            for part in parts:
                self.sections += 1
                sections.append((self.sections, number, part.heading, part.level, part.text))
            linked = dict.fromkeys(page.links)
            links += [(number, position, title, name_key(title)) for position, title in enumerate(linked)]
            for rank, some in enumerate(((page.title,), page.aliases, page.redirects)):
                for name in some:
                    folded = name_key(name)
                    names.append((folded, rank, number))
                    self._words.update(words_of(folded))
            others["alias"] += [(number, name) for name in page.aliases]
            others["redirect"] += [(number, name) for name in page.redirects]
        run = self._connection.executemany
        run("INSERT INTO page VALUES(?, ?, ?, ?, ?)", pages)
        run("INSERT INTO section VALUES(?, ?, ?, ?, ?)", sections)
        run("INSERT INTO new_link VALUES(?, ?, ?, ?)", links)
        run("INSERT INTO new_name VALUES(?, ?, ?)", names)
        for table, rows in others.items():
            run(f"INSERT OR IGNORE INTO {table} VALUES(?, ?)", rows)

    def finish(self) -> None:
        """Sort names, links and words into their tables."""
        words = list(enumerate(sorted(self._words), start=1))
        self._connection.executemany("INSERT INTO word VALUES(?, ?)", words)
        for place in range(0, len(words), 10_000):
            forms = [(form, number) for number, word in words[place : place + 10_000] for form in forms_of(word)]
            self._connection.executemany("INSERT INTO new_form VALUES(?, ?)", forms)
        for statement in (*_FINISH.split(";"), _LINKS, "DROP TABLE new_link", "DROP TABLE new_name"):
            self._connection.execute(statement)

    def _readable(self, page: Page) -> Page:
        """The page without what neither a database nor JSON can hold: NUL, and halves of surrogate pairs."""
        try:
            if b"\0" not in _bytes_of(page):
                return page
        except UnicodeEncodeError:
            pass

        def clean(text: str) -> str:
            return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")

        sections = tuple(Section(clean(part.heading), part.level, clean(part.text)) for part in page.sections)
        made = Page(
            clean(page.key),
            clean(page.title),
            sections,
            tuple(map(clean, page.aliases)),
            tuple(map(clean, page.redirects)),
            tuple(map(clean, page.links)),
        )
        self._problems.note("characters that no text can hold, replaced", made.title)
        return made


def _bytes_of(page: Page) -> bytes:
    """All of a page, for its hash and for a look at its characters."""
    parts = [part for section in page.sections for part in (section.heading, str(section.level), section.text)]
    names = ("\x1e".join(names) for names in (page.aliases, page.redirects, page.links))
    return "\x1f".join((page.key, page.title, *parts, *names)).encode()


class StoredPages:
    """A written file, open for reading by any thread."""

    def __init__(self, path: Path, marker: Path | None = None) -> None:
        self.path = path
        self.pool = Pool(path, marker)
        try:
            self.meta: dict[str, str] = dict(self.pool.rows("SELECT name, value FROM meta"))
        except (LibraryDamaged, sqlite3.DatabaseError):  # no database, or somebody else's
            raise ConfigurationError(f"{path} is not a file of pages that mcpgym wrote, or it is damaged") from None
        if self.meta.get("schema") != str(SCHEMA):
            have = self.meta.get("schema", "no")
            raise ConfigurationError(f"{path} has tables of version {have}, this mcpgym reads {SCHEMA}: build it anew")
        self.about: dict[str, str] = json.loads(self.meta["about"])
        self.pages = int(self.meta["pages"])
        self.sections = int(self.meta["sections"])

    def problems(self) -> Problems:
        """What was wrong with the corpus when it was read."""
        found = self.pool.rows("SELECT kind, count, examples FROM problem ORDER BY kind")
        return Problems(
            {kind: count for kind, count, _ in found}, {kind: json.loads(examples) for kind, _, examples in found}
        )

    def rows(self) -> Iterator[Row]:
        """Every section as search indexes it."""
        for page, _, names in self._whole_pages():
            for place, (number, heading, _, text) in enumerate(page):
                yield Row(number, names if not place else names.partition("\n")[0], heading, text, not place)

    def _whole_pages(self) -> Iterator[tuple[list[tuple[int, str, int, str]], int, str]]:
        with self.pool.connection() as connection:
            others: dict[int, list[str]] = {}
            last = 0
            pages = connection.execute("SELECT number, title, first, sections FROM page ORDER BY number")
            texts = connection.execute("SELECT number, heading, level, text FROM section ORDER BY number")
            for number, title, _, count in pages:
                if number > last:
                    last = number + _BATCH
                    others = {}
                    for table in ("alias", "redirect"):
                        sql = f"SELECT page, name FROM {table} WHERE page BETWEEN ? AND ? ORDER BY page, name"
                        for page, name in connection.execute(sql, (number, last)):
                            others.setdefault(page, []).append(name)
                names = "\n".join([title.replace("\n", " "), *others.get(number, [])[:20]])
                yield list(islice(texts, count)), number, names


class StoredCorpus:
    """A written file as a corpus (``sqlite:PATH``): opened where it lies, not read again."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise ConfigurationError(f"there is no file {path}")
        self.path = path.resolve()
        self.stored = StoredPages(self.path)

    @property
    def about(self) -> Mapping[str, str]:
        """What it was when it was built."""
        return self.stored.about

    @property
    def fingerprint(self) -> str:
        """That of its content."""
        return self.stored.meta["content"]

    @property
    def size(self) -> int | None:
        """How many pages it has."""
        return self.stored.pages

    def pages(self, problems: Problems) -> Iterable[Page]:
        """Every page, with the problems it was built with."""
        known = self.stored.problems()
        problems.counts.update(known.counts)
        problems.examples.update(known.examples)
        with self.stored.pool.connection() as connection:
            found = connection.execute("SELECT number, key, title, first, sections FROM page ORDER BY number")
            for number, key, title, first, count in found:
                yield Page(
                    key,
                    title,
                    tuple(
                        Section(*part)
                        for part in connection.execute(
                            "SELECT heading, level, text FROM section WHERE number BETWEEN ? AND ? ORDER BY number",
                            (first, first + count - 1),
                        )
                    ),
                    *(
                        tuple(name for (name,) in connection.execute(sql, (number,)))
                        for sql in (
                            "SELECT name FROM alias WHERE page = ? ORDER BY name",
                            "SELECT name FROM redirect WHERE page = ? ORDER BY name",
                            "SELECT coalesce(link.title, page.title) FROM link LEFT JOIN page ON "
                            "page.number = link.target WHERE link.page = ? ORDER BY position",
                        )
                    ),
                )
