"""A generated world as a corpus: its pages in a shuffled order, each made when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcpgym.errors import ConfigurationError
from mcpgym_environments.wiki_search.knowledge import Entity
from mcpgym_environments.wiki_search.pages import Page, Problems
from mcpgym_environments.wiki_search.world.knowledge import WorldKnowledge
from mcpgym_environments.wiki_search.world.prose.wording import Choice
from mcpgym_environments.wiki_search.world.prose.writer import Dials, Writer
from mcpgym_environments.wiki_search.world.relations import KINDS

VERSION = "7"
"""Changes whenever the same seed gives other pages: indexes built before are built anew."""


class World:
    """An encyclopedia of ``pages`` pages about a fictional world, the same for equal arguments in every process.

    Args:
        seed: which world; two seeds have nothing in common.
        pages: how many things there are; each has a page.
        distractors, paraphrase, tables, near_duplicates: see :class:`~.prose.writer.Dials` and
            :class:`~.knowledge.WorldKnowledge`; each from 0 to 1.
        wording: ``train`` leaves out the sentences held out, ``test`` uses them only.

    Raises:
        ConfigurationError: too few pages, or a dial out of its range.
    """

    def __init__(
        self,
        seed: int = 0,
        pages: int = 2000,
        *,
        distractors: float = 0.4,
        paraphrase: float = 0.8,
        tables: float = 0.15,
        near_duplicates: float = 0.1,
        wording: Choice = "all",
    ) -> None:
        shares = {
            "distractors": distractors,
            "paraphrase": paraphrase,
            "tables": tables,
            "near_duplicates": near_duplicates,
        }
        for name, share in shares.items():
            if not 0 <= share <= 1:
                raise ConfigurationError(f"the world's {name} must lie between 0 and 1, not be {share}")
        if wording not in ("all", "train", "test"):
            raise ConfigurationError(f"the world's wording must be all, train or test, not {wording!r}")
        self._size = pages
        self._name = " ".join(f"{name}={share:g}" for name, share in shares.items()) + f" wording={wording}"
        self._seed = seed
        self.knowledge = WorldKnowledge(seed, pages, near_duplicates)
        self._writer = Writer(self.knowledge, Dials(distractors, paraphrase, tables, wording))

    @property
    def about(self) -> Mapping[str, str]:
        """What it is, for people and for the index."""
        return {
            "kind": "world",
            "source": f"seed {self._seed}, {self._size} pages, {self._name}",
            "title": f"Encyclopedia of world {self._seed}",
            "licence": "CC0-1.0",
            "language": "en",
        }

    @property
    def fingerprint(self) -> str:
        """Equal for equal pages."""
        return f"world/{VERSION} seed={self._seed} pages={self._size} {self._name}"

    @property
    def size(self) -> int:
        """How many pages there are."""
        return self._size

    def pages(self, problems: Problems) -> Iterator[Page]:
        """Every page, in an order that says nothing about what is on them; nothing is ever wrong with one."""
        counts = self.knowledge.columns.counts
        starts, start = [], 0
        for kind in KINDS:
            starts.append((start, kind))
            start += counts[kind]
        for number in self.knowledge.columns.draws.order("pages", start):
            first, kind = next(pair for pair in reversed(starts) if pair[0] <= number)
            yield self._writer.page(self.knowledge.entity(kind, int(number) - first))

    def page(self, key: str) -> Page:
        """The page with a key, made without any other.

        Raises:
            KeyError: no page has this key.
        """
        return self._writer.page(self.entity(key))

    def entity(self, key: str) -> Entity:
        """The thing whose page has a key.

        Raises:
            KeyError: no page has this key.
        """
        if key not in self.knowledge:
            raise KeyError(key)
        kind, _, row = key.partition("-")
        return self.knowledge.entity(kind, int(row))
