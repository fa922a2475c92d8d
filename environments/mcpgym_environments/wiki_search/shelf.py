"""What all episodes of a configuration share: the encyclopedia, what it is known to say, and the questions about it.

Instances come and go (a check makes dozens); what is costly to make is kept here, for the few configurations that a
process uses.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING

from mcpgym import ConfigurationError
from mcpgym_environments.wiki_search.config import WikiSearchConfig

if TYPE_CHECKING:
    from mcpgym_environments.wiki_search.knowledge import Knowledge
    from mcpgym_environments.wiki_search.library import Library
    from mcpgym_environments.wiki_search.pages import Corpus

WORLD = "world"
KNOWN = (WORLD, "factbook")
"""The corpora whose facts are known, so that questions can be made from them."""
KEPT = 4
"""How many encyclopedias a process keeps open."""


class Shelf:
    """An encyclopedia, made as far as it is asked for: questions need no index, and searching needs no questions."""

    def __init__(self, config: WikiSearchConfig) -> None:
        self._config = config
        self._lock = threading.RLock()
        self._corpus: Corpus | None = None
        self._library: Library | None = None
        self._infoboxes: Knowledge | None = None

    @property
    def is_open(self) -> bool:
        """Whether the library is there already."""
        return self._library is not None

    def corpus(self) -> Corpus:
        """The pages.

        Raises:
            ConfigurationError: there is no such corpus, or it cannot be read.
        """
        with self._lock:
            if self._corpus is None:
                self._corpus = _corpus(self._config)
            return self._corpus

    def knowledge(self) -> Knowledge:
        """What the pages are known to say.

        Raises:
            ConfigurationError: nothing is known of this corpus.
        """
        known: Knowledge | None = getattr(self.corpus(), "knowledge", None)
        if known is None:
            raise ConfigurationError(
                f"no questions can be made about {self._config.corpus}: give questions=FILE.jsonl, "
                "questions=infoboxes or questions=open"
            )
        return known

    def infoboxes(self) -> Knowledge:
        """What the infoboxes of the pages say, read from the library.

        Raises:
            ConfigurationError: they say too little.
        """
        with self._lock:
            if self._infoboxes is None:
                from mcpgym_environments.wiki_search.infoboxes import InfoboxKnowledge

                self._infoboxes = InfoboxKnowledge(self.library())
            return self._infoboxes

    def library(self, *, told: bool = True) -> Library:
        """The library, built first where the cache has none; that is told on standard error.

        ``told``: with what was wrong with the source.

        Raises:
            ConfigurationError: the corpus or the engine is not to be had.
        """
        if self._library is not None:
            return self._library
        with self._lock:
            if self._library is None:
                from mcpgym_environments.wiki_search.building import ProgressLine, open_library

                line = ProgressLine()
                self._library = open_library(self.corpus(), self._config.engine, line)
                line.finish(self._library.problems if told else None)
            return self._library


def shelf_of(config: WikiSearchConfig) -> Shelf:
    """The shelf of ``config``; configurations that differ in other things share one."""
    return _shelf(*(getattr(config, name) for name in _SHELF))


_SHELF = (
    "corpus",
    "engine",
    "pages",
    "world_seed",
    "distractors",
    "paraphrase",
    "tables",
    "near_duplicates",
    "wording",
)


@lru_cache(maxsize=KEPT)
def _shelf(*values: object) -> Shelf:
    return Shelf(WikiSearchConfig(**dict(zip(_SHELF, values, strict=True))))  # type: ignore[arg-type]


def _corpus(config: WikiSearchConfig) -> Corpus:
    from mcpgym_environments.wiki_search.corpora import corpus_of

    dials = ("pages", "distractors", "paraphrase", "tables", "near_duplicates", "wording")
    world = {"seed": config.world_seed, **{name: getattr(config, name) for name in dials}}
    return corpus_of(config.corpus, **(world if config.corpus == WORLD else {}))
