"""Building a corpus' library once, in a cache folder, and opening it in milliseconds from then on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mcpgym_environments.wiki_search.library import Library
from mcpgym_environments.wiki_search.pages import Corpus


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is: ``done`` of ``total`` pages (None: not known) in ``stage`` (``reading``, ``indexing``)."""

    stage: str
    done: int
    total: int | None


def open_library(
    corpus: Corpus,
    engine: str = "auto",
    on_progress: Callable[[Progress], None] | None = None,
    folder: Path | None = None,
) -> Library:
    """The library of ``corpus``, built first where the cache has none. ``engine``: auto, fts5, tantivy or hybrid."""
    raise NotImplementedError
