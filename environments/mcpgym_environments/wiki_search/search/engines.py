"""The engines there are, by name, and which one a library of some size gets."""

from __future__ import annotations

from mcpgym.errors import UnknownNameError
from mcpgym_environments.wiki_search.search.engine import Engine
from mcpgym_environments.wiki_search.search.fts5 import Fts5

NAMES = ("auto", "fts5")
LARGE = 50_000
"""Pages above which ``auto`` takes tantivy where it is installed."""


def engine_named(name: str, pages: int) -> Engine:
    """The engine of this name for a library of so many pages; ``auto`` chooses one."""
    if name not in NAMES:
        raise UnknownNameError("search engine", name, NAMES)
    return Fts5()


def available() -> tuple[str, ...]:
    """The engines whose packages are installed."""
    return ("fts5",)
