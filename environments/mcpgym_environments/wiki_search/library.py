"""An encyclopedia that can be looked things up in: pages and sections by short ids, links, names, and search."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from mcpgym_environments.wiki_search.entries import Hit, Link, PageEntry, SectionEntry, SectionText
from mcpgym_environments.wiki_search.names import name_key, numbers_of, page_id, section_id
from mcpgym_environments.wiki_search.pages import Problems
from mcpgym_environments.wiki_search.search.engine import Found, Index
from mcpgym_environments.wiki_search.search.query import STOP_WORDS, Query, parse_query
from mcpgym_environments.wiki_search.search.snippets import snippet
from mcpgym_environments.wiki_search.search.spelling import LONGEST, SHORTEST, forms_of, nearest
from mcpgym_environments.wiki_search.store import StoredPages

__all__ = ["Hit", "Library", "Link", "PageEntry", "SectionEntry", "SectionText"]

MOST_HITS = 100
"""Hits that one search gives at most."""
_NAMED_WORDS = 40
_LONGEST_NAME = 8
_MOST_NAMED = 6
_NAMESAKES = 3
"""How far a query is searched for names: its words, the words of a name, pages in all, and pages of one name."""
_POSSESSIVE = re.compile(r"['’]s\b", re.IGNORECASE)
_BETWEEN_NAMES = re.compile(r"[?!:;\"“”„«»]")
_PAGE = "number, key, title, sections"


class Library:
    """Read-only, shared by every episode and thread of a process. Made by :func:`building.open_library`.

    ``about`` says what the corpus is, ``pages`` how many it has, ``content`` is a hash over all of them (equal where
    two machines have the same text) and ``engine`` the name of the engine that searches.
    """

    def __init__(self, stored: StoredPages, index: Index, engine: str) -> None:
        self._stored = stored
        self._index = index
        self._rows = stored.pool.rows
        self.about = stored.about
        self.pages = stored.pages
        self.content = stored.meta["content"]
        self.engine = engine

    @property
    def problems(self) -> Problems:
        """What was wrong with the corpus when it was read."""
        return self._stored.problems()

    def page(self, page_id: str) -> PageEntry | None:
        """The page with this id (case, quotes and brackets around it do not matter), or None."""
        numbers = numbers_of(page_id)
        if numbers is None or numbers[1] is not None:
            return None
        return self._one("number = ?", numbers[0])

    def page_by_key(self, key: str) -> PageEntry | None:
        """The page that the corpus knows by this key."""
        return self._one("key = ?", _sayable(key))

    def page_by_title(self, title: str) -> PageEntry | None:
        """The page of this title, else alias, else redirect; case, accents and punctuation do not matter.

        Of several, the one whose title is spelt exactly so, else the first of the corpus.
        """
        folded = name_key(_sayable(title)[:500])
        if not folded:
            return None
        sql = (
            f"SELECT {_PAGE} FROM name JOIN page ON page.number = name.page WHERE folded = ? "
            "ORDER BY title <> ?, rank, number LIMIT 1"
        )
        return next(map(_page_entry, self._rows(sql, (folded, _sayable(title)))), None)

    def nearest(self, text: str, limit: int = 3) -> list[PageEntry]:
        """The pages whose titles are most like ``text``, misspelt or not; the nearest first."""
        folded = name_key(_sayable(text)[:500])
        if not folded:
            return []
        begins = self._rows(
            "SELECT page FROM name WHERE folded >= ? AND folded < ? LIMIT 20", (folded, folded + chr(0x10FFFF))
        )
        query, _ = self._corrected(parse_query(folded))
        found = self._index.find(query, 60, titles=True) if query else []
        pages = {page for (page,) in begins} | {entry for entry, _ in self._pages_of(found)}
        matcher = SequenceMatcher(b=folded, autojunk=False)

        def unlike(entry: PageEntry) -> tuple[float, int]:
            matcher.set_seq1(name_key(entry.title)[:500])
            return -matcher.ratio(), int(entry.id[1:])

        return sorted(self._entries(pages).values(), key=unlike)[:limit]

    def sections(self, page_id: str) -> list[SectionEntry]:
        """A page's table of contents; empty where there is no such page."""
        numbers = numbers_of(page_id)
        if numbers is None or numbers[1] is not None:
            return []
        rows = self._rows(
            "SELECT section.page, section.number - first + 1, heading, level, length(text) FROM page JOIN section ON "
            "section.number BETWEEN first AND first + sections - 1 WHERE page.number = ? ORDER BY section.number",
            (numbers[0],),
        )
        return [
            SectionEntry(section_id(page, place), f"p{page}", heading, level, characters)
            for page, place, heading, level, characters in rows
        ]

    def section(self, section_id: str) -> SectionText | None:
        """The section with this id, or None."""
        numbers = numbers_of(section_id)
        if numbers is None or numbers[1] is None:
            return None
        rows = self._rows(
            "SELECT key, title, heading, level, text FROM page JOIN section ON section.number = first + ? - 1 "
            "WHERE page.number = ? AND ? BETWEEN 1 AND sections",
            (numbers[1], numbers[0], numbers[1]),
        )
        return next((SectionText(_id(numbers[0], numbers[1]), page_id(numbers[0]), *row) for row in rows), None)

    def links(self, page_id: str) -> list[Link]:
        """The pages that a page links to, in order."""
        numbers = numbers_of(page_id)
        if numbers is None or numbers[1] is not None:
            return []
        rows = self._rows(
            "SELECT coalesce(link.title, page.title), target FROM link LEFT JOIN page ON page.number = target "
            "WHERE link.page = ? ORDER BY position",
            (numbers[0],),
        )
        return [Link(title, None if target is None else f"p{target}") for title, target in rows]

    def names(self, page_id: str) -> list[str]:
        """What else a page is called: its aliases."""
        numbers = numbers_of(page_id)
        rows = self._rows("SELECT name FROM alias WHERE page = ? ORDER BY name", (numbers[0],)) if numbers else []
        return [name for (name,) in rows]

    def tables(self, after: int, pages: int) -> list[tuple[int, int, str, str]]:
        """The sections with tables of ``pages`` pages behind number ``after``: page, place, heading and text."""
        sql = (
            "SELECT page.number, section.number - first + 1, heading, text FROM page JOIN section ON "
            "section.number BETWEEN first AND first + sections - 1 WHERE page.number > ? AND page.number <= ? "
            "AND instr(text, ' | ') ORDER BY section.number"
        )
        return self._rows(sql, (after, after + pages))

    def pages_named(self, name: str) -> list[str]:
        """The ids of all pages that go by ``name``, as a title, an alias or a redirect."""
        sql = "SELECT DISTINCT page FROM name WHERE folded = ? ORDER BY page LIMIT 3"
        return [page_id(page) for (page,) in self._rows(sql, (name_key(name),))]

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """The pages that fit ``query`` best, one hit a page, in a fixed order. Never fails, whatever the query.

        Pages whose names stand in the query come first, the longest and rarest names before others; then what the
        engine finds. Words that no section has are taken for misspelt names.
        """
        limit = min(limit, MOST_HITS)
        parsed, words = self._corrected(parse_query(query))
        found = self._index.find(parsed, limit * 5) if parsed and limit > 0 else []
        best = self._best_sections(found)
        named = self._named_in(parsed.text)
        top = found[0].score if found else 0.0
        chosen = {
            page: (best.get(page, (0, 0.0))[0], top + len(named) - place)
            for place, page in enumerate(named)
            if limit > 0
        }
        for page, section in best.items():
            chosen.setdefault(page, section)
        return self._hits(dict(list(chosen.items())[: max(0, limit)]), words)

    def close(self) -> None:
        """Give its files back."""
        self._index.close()
        self._stored.pool.close()

    def _one(self, where: str, value: object) -> PageEntry | None:
        return next(map(_page_entry, self._rows(f"SELECT {_PAGE} FROM page WHERE {where}", (value,))), None)

    def _entries(self, numbers: Iterable[int]) -> dict[int, PageEntry]:
        wanted = sorted(numbers)
        marks = ",".join("?" * len(wanted))
        rows = self._rows(f"SELECT {_PAGE} FROM page WHERE number IN ({marks})", tuple(wanted))
        return {row[0]: _page_entry(row) for row in rows}

    def _pages_of(self, found: list[Found]) -> list[tuple[int, Found]]:
        """The page of each section, in the order given."""
        marks = ",".join("?" * len(found))
        sql = f"SELECT number, page FROM section WHERE number IN ({marks})"
        pages = dict(self._rows(sql, tuple(hit.number for hit in found)))
        return [(pages[hit.number], hit) for hit in found]

    def _named_in(self, text: str) -> list[int]:
        """The pages whose names stand in ``text``, of overlapping names the longest; long and rare names first."""
        words = name_key(_POSSESSIVE.sub("", _BETWEEN_NAMES.sub(" ", text))).split()[:_NAMED_WORDS]
        spans: dict[str, tuple[int, int]] = {}
        for length in range(1, _LONGEST_NAME + 1):
            for start in range(len(words) - length + 1):
                part = words[start : start + length]
                if length == len(words) or not all(word in STOP_WORDS or word.isdigit() for word in part):
                    spans.setdefault(" ".join(part), (start, start + length))
        marks = ",".join("?" * len(spans))
        sql = f"SELECT folded, page FROM name WHERE folded IN ({marks}) ORDER BY folded, rank, page LIMIT 200"
        pages: dict[str, list[int]] = {}
        for name, page in self._rows(sql, tuple(spans)):
            pages.setdefault(name, []).append(page)
        taken: set[int] = set()
        named: list[tuple[int, int, int, list[int]]] = []
        for name in sorted(pages, key=lambda name: (spans[name][0] - spans[name][1], spans[name][0])):
            places = range(*spans[name])
            if taken.isdisjoint(places):
                taken.update(places)
                rarest = min(self._index.frequency(word) for word in name.split())
                named.append((-len(places), rarest, places.start, pages[name][:_NAMESAKES]))
        named.sort()
        return list(dict.fromkeys(page for *_, some in named for page in some))[:_MOST_NAMED]

    def _best_sections(self, found: list[Found]) -> dict[int, tuple[int, float]]:
        """For each page, best first, its best section's number and score."""
        best: dict[int, tuple[int, float]] = {}
        for page, hit in self._pages_of(found):
            best.setdefault(page, (hit.number, hit.score))
        return best

    def _hits(self, best: dict[int, tuple[int, float]], words: tuple[str, ...]) -> list[Hit]:
        """The hits for pages and their sections (0: the first)."""
        marks = ",".join("?" * len(best))
        sql = f"SELECT number, title, first FROM page WHERE number IN ({marks})"
        pages = {number: (title, first) for number, title, first in self._rows(sql, tuple(best))}
        sections = {number: section or pages[number][1] for number, (section, _) in best.items()}
        sql = f"SELECT number, heading, substr(text, 1, 40000) FROM section WHERE number IN ({marks})"
        texts = {number: (heading, text) for number, heading, text in self._rows(sql, tuple(sections.values()))}
        hits = []
        for page, (_, score) in best.items():
            title, first = pages[page]
            heading, text = texts[sections[page]]
            place = sections[page] - first + 1
            hits.append(Hit(f"p{page}", title, _id(page, place), heading, snippet(text, words), round(score, 4)))
        return hits

    def _corrected(self, query: Query) -> tuple[Query, tuple[str, ...]]:
        """The query with unknown words corrected where a name's word is near, and the words to show."""
        changed = {
            word: near
            for word in query.all_words
            if SHORTEST <= len(word) <= LONGEST and not self._index.frequency(word)
            if (near := self._spelling(word))
        }
        if changed:
            words = dict.fromkeys(changed.get(word, word) for word in query.words)
            phrases = (tuple(changed.get(word, word) for word in phrase) for phrase in query.phrases)
            text = query.text
            for word, near in changed.items():
                text = re.sub(rf"\b{re.escape(word)}\b", near, text, flags=re.IGNORECASE)
            query = Query(tuple(words), tuple(phrases), text)
        return query, query.all_words

    def _spelling(self, word: str) -> str | None:
        forms = sorted(forms_of(word))
        marks = ",".join("?" * len(forms))
        sql = f"SELECT DISTINCT word.word FROM deletion JOIN word ON number = deletion.word WHERE form IN ({marks})"
        return nearest(word, (near for (near,) in self._rows(sql, tuple(forms))))


def _page_entry(row: tuple[int, str, str, int]) -> PageEntry:
    return PageEntry(page_id(row[0]), *row[1:])


def _id(page: int, place: int) -> str:
    return section_id(page, place)


def _sayable(text: str) -> str:
    """Text as SQLite takes it: without halves of surrogate pairs."""
    return text.encode("utf-8", "replace").decode("utf-8")
