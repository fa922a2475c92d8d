"""What a library gives: pages, sections, links and hits, by their short ids."""

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
