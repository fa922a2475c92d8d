"""An encyclopedia that can be looked things up in: pages and sections by short ids, links, names, and search."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PageEntry:
    """A page. ``id`` is short and copyable (``p412``), from its place in the corpus; ``sections`` is their number."""

    id: str
    key: str
    title: str
    sections: int


@dataclass(frozen=True, slots=True)
class SectionEntry:
    """A line of a page's table of contents; ``characters`` is the length of the section's text."""

    id: str
    page_id: str
    heading: str
    level: int
    characters: int


@dataclass(frozen=True, slots=True)
class SectionText:
    """A whole section; ``id`` is its page's with its place (``p412.3``)."""

    id: str
    page_id: str
    page_key: str
    title: str
    heading: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another page; ``page_id`` is None where the corpus has no such page."""

    title: str
    page_id: str | None


@dataclass(frozen=True, slots=True)
class Hit:
    """A page that search found, with the section that fits best; a higher ``score`` fits better.

    ``snippet`` is at most 200 characters of the section around the words that matched, cut at words.
    """

    page_id: str
    title: str
    section_id: str
    heading: str
    snippet: str
    score: float


class Library:
    """Read-only, shared by every episode and thread of a process. Made by :func:`building.open_library`."""

    about: dict[str, str]
    pages: int
    problems: dict[str, tuple[int, list[str]]]

    def page(self, page_id: str) -> PageEntry | None:
        """The page with this id (case, quotes and brackets around it do not matter), or None."""
        raise NotImplementedError

    def page_by_key(self, key: str) -> PageEntry | None:
        """The page that the corpus knows by this key."""
        raise NotImplementedError

    def page_by_title(self, title: str) -> PageEntry | None:
        """The page of this title, alias or redirect; case, accents and punctuation do not matter."""
        raise NotImplementedError

    def nearest(self, text: str, limit: int = 3) -> list[PageEntry]:
        """The pages whose titles are most like ``text``, misspelt or not; the nearest first."""
        raise NotImplementedError

    def sections(self, page_id: str) -> list[SectionEntry]:
        """A page's table of contents; empty where there is no such page."""
        raise NotImplementedError

    def section(self, section_id: str) -> SectionText | None:
        """The section with this id, or None."""
        raise NotImplementedError

    def links(self, page_id: str) -> list[Link]:
        """The pages that a page links to, in order."""
        raise NotImplementedError

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """The pages that fit ``query`` best, one hit a page, in a fixed order. Never fails, whatever the query."""
        raise NotImplementedError

    def close(self) -> None:
        """Give its files back."""
        raise NotImplementedError
