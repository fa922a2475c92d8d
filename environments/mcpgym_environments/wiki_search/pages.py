"""What an encyclopedia consists of, whatever it was read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page under one heading; the first has the page's title for a heading.

    ``level`` is 1 for the first, 2 for what stands under the title, and so on. ``text`` is plain text with empty lines
    between paragraphs; tables are lines with `` | `` between cells.
    """

    heading: str
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """One article. ``key`` names it within its corpus and never changes; ``links`` are titles of other pages.

    ``aliases`` are further names that the page goes by; ``redirects`` are titles that lead to it.
    """

    key: str
    title: str
    sections: tuple[Section, ...]
    aliases: tuple[str, ...] = ()
    redirects: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(slots=True)
class Problems:
    """What was wrong with a corpus: counts by kind, and the first examples of each; what could be read stays usable."""

    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def note(self, kind: str, example: str) -> None:
        """Count one more of ``kind``."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        kept = self.examples.setdefault(kind, [])
        if len(kept) < 5:
            kept.append(example[:200])


class Corpus(Protocol):
    """A source of pages.

    ``about`` says what it is (``kind``, ``source``, ``title``, ``licence``, ``language``, …). ``fingerprint`` changes
    whenever its pages do, and is cheap: a seed and sizes, or files' names, sizes and times.
    """

    @property
    def about(self) -> Mapping[str, str]:
        """What it is, for people and for the index."""
        ...

    @property
    def fingerprint(self) -> str:
        """Equal for equal pages."""
        ...

    @property
    def size(self) -> int | None:
        """How many pages there are, where that is known beforehand."""
        ...

    def pages(self, problems: Problems) -> Iterable[Page]:
        """Every page, in a fixed order; what cannot be read is noted in ``problems`` and left out."""
        ...
