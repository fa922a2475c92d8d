"""What a search engine is: an index in a folder of its own, made from sections, that finds their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from mcpgym_environments.wiki_search.search.query import Query


class Row(NamedTuple):
    """A section as it is indexed. ``title`` is the page's, with its other names in the page's first section."""

    number: int
    title: str
    heading: str
    text: str
    is_first: bool


class Found(NamedTuple):
    """A section that fits, and how well: a higher score fits better."""

    number: int
    score: float


class Index(Protocol):
    """An index that is open for reading, by any thread."""

    def find(self, query: Query, limit: int, *, titles: bool = False) -> list[Found]:
        """The sections that fit best, best first, equals by their numbers: those that have every word before others.

        ``titles``: look only at titles, for any of the words.
        """
        ...

    def frequency(self, word: str) -> int:
        """In how many sections a word occurs, in any of its forms that the index holds for the same."""
        ...

    def close(self) -> None:
        """Give its files back."""
        ...


class Engine(Protocol):
    """A kind of index. ``version`` changes whenever what it writes does."""

    @property
    def name(self) -> str:
        """Its name in ``open_library`` and on disk."""
        ...

    @property
    def version(self) -> int:
        """The layout of its files."""
        ...

    def build(self, folder: Path, rows: Iterable[Row], on_row: Callable[[int], None]) -> None:
        """Write the index of ``rows`` to ``folder`` (empty); ``on_row`` hears the numbers of sections done."""
        ...

    def open(self, folder: Path) -> Index:
        """Open what :meth:`build` wrote."""
        ...
