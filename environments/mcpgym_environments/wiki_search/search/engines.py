"""The engines there are, by name, and which one a library of some size gets."""

from __future__ import annotations

from importlib.util import find_spec

from mcpgym.errors import UnknownNameError
from mcpgym_environments.wiki_search.search.engine import Engine
from mcpgym_environments.wiki_search.search.fts5 import Fts5
from mcpgym_environments.wiki_search.search.with_tantivy import Tantivy

NEEDS: dict[str, tuple[str, ...]] = {"fts5": (), "tantivy": ("tantivy",)}
"""The engines, and the packages that each imports beyond the standard library."""
NAMES = ("auto", *NEEDS)
LARGE = 50_000
"""Pages above which ``auto`` takes tantivy where it is installed."""


def engine_named(name: str, pages: int) -> Engine:
    """The engine of this name for a library of so many pages; ``auto`` chooses one. It may not be installed."""
    if name not in NAMES:
        raise UnknownNameError("search engine", name, NAMES)
    if name == "auto":
        name = "tantivy" if pages > LARGE and "tantivy" in available() else "fts5"
    return Tantivy() if name == "tantivy" else Fts5()


def available() -> tuple[str, ...]:
    """The engines whose packages are installed."""
    return tuple(name for name, packages in NEEDS.items() if all(find_spec(package) for package in packages))
