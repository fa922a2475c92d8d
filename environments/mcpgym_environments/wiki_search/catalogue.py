"""The questions of a configuration, by split and index: made, from a file, or none."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from mcpgym import ConfigurationError
from mcpgym_environments.wiki_search.config import INFOBOXES, OPEN, WikiSearchConfig
from mcpgym_environments.wiki_search.shelf import KEPT, KNOWN, Shelf, shelf_of

if TYPE_CHECKING:
    from mcpgym_environments.wiki_search.questions import Questions
    from mcpgym_environments.wiki_search.questions.question import Question

SPLITS = ("test", "train")
REMEMBERED = 50_000
"""How many questions are kept once they were made."""


class Catalogue:
    """Questions by split and index, and by their text."""

    is_open = False
    """Whether there are none: somebody asks their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[tuple[str, int], Question] = {}
        self._by_text: dict[str, Question] = {}

    def count(self, split: str) -> int:
        """How many there are in ``split``."""
        raise NotImplementedError

    def make(self, split: str, index: int) -> Question | None:
        """The question at ``index``, made anew."""
        raise NotImplementedError

    def question(self, split: str, index: int) -> Question | None:
        """The question at ``index``; None is an open visit."""
        made = self._made.get((split, index))
        if made is None and (made := self.make(split, index)) is not None:
            with self._lock:
                if len(self._made) >= REMEMBERED:
                    self._made.clear()
                    self._by_text.clear()
                self._made[split, index] = made
                self._by_text.setdefault(made.text, made)
        return made

    def first(self, count: int) -> Iterator[Question]:
        """The first questions of each split."""
        for split in SPLITS:
            for index in range(min(count, self.count(split))):
                if (made := self.question(split, index)) is not None:
                    yield made

    def find(self, text: str) -> Question | None:
        """The question that is worded like this; all are looked through where it was not made here before."""
        if text not in self._by_text and not self.is_open:
            for split in SPLITS:
                for index in range(self.count(split)):
                    if (made := self.question(split, index)) is not None and made.text == text:
                        return made
        return self._by_text.get(text)


class OpenVisit(Catalogue):
    """One task without a question."""

    is_open = True

    def count(self, split: str) -> int:
        """One, in the test split."""
        return int(split == "test")

    def make(self, split: str, index: int) -> None:
        """There is none."""


class Given(Catalogue):
    """Questions from a file."""

    def __init__(self, questions: dict[str, Sequence[Question]]) -> None:
        super().__init__()
        self._given = questions

    def count(self, split: str) -> int:
        """As many as the file has."""
        return len(self._given.get(split, ()))

    def make(self, split: str, index: int) -> Question:
        """The one in this place."""
        return self._given[split][index]


class Made(Catalogue):
    """Questions made from what the encyclopedia is known to say."""

    def __init__(
        self, shelf: Shelf, boxes: bool, kinds: tuple[str, ...], hops: tuple[int, ...], counts: dict[str, int]
    ) -> None:
        super().__init__()
        self._source = shelf, boxes, kinds, hops
        self._counts = counts

    def count(self, split: str) -> int:
        """As the configuration says."""
        return self._counts[split]

    def make(self, split: str, index: int) -> Question:
        """The question at ``index``, from the facts alone."""
        return _questions(*self._source).question(split, index)


@lru_cache(maxsize=2 * KEPT)
def _questions(shelf: Shelf, boxes: bool, kinds: tuple[str, ...], hops: tuple[int, ...]) -> Questions:
    from mcpgym_environments.wiki_search.questions import Questions

    return Questions(shelf.infoboxes() if boxes else shelf.knowledge(), kinds=kinds, hops=hops)


def catalogue_of(config: WikiSearchConfig) -> Catalogue:
    """The questions of ``config``; equal configurations share them.

    Raises:
        ConfigurationError: a file of questions that cannot be read.
    """
    if config.questions == OPEN or (not config.questions and config.corpus not in KNOWN):
        return OpenVisit()
    if config.questions_file:
        return _given(config.questions_file)
    boxes = config.questions == INFOBOXES
    return _made(shelf_of(config), boxes, config.question_kinds, config.hops, config.train_tasks, config.test_tasks)


@lru_cache(maxsize=2 * KEPT)
def _made(shelf: Shelf, boxes: bool, kinds: tuple[str, ...], hops: tuple[int, ...], train: int, test: int) -> Made:
    return Made(shelf, boxes, kinds, hops, {"train": train, "test": test})


@lru_cache(maxsize=2 * KEPT)
def _given(path: str) -> Given:
    from mcpgym_environments.wiki_search.questions import read_questions

    found: dict[str, Sequence[Question]] = {}
    refusals = []
    for split in SPLITS:
        try:
            found[split] = read_questions(path, split)
        except ConfigurationError as error:  # of both splits alike, unless it is that one has no question
            refusals.append(error)
    if not found:
        raise refusals[0]
    return Given(found)
