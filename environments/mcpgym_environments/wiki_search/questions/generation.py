"""Questions made from what a corpus is known to say."""

from __future__ import annotations

from collections.abc import Sequence

from mcpgym_environments.wiki_search.knowledge import Knowledge
from mcpgym_environments.wiki_search.questions.question import KINDS, Question


class Questions:
    """The questions of one knowledge base; any index of a split can be asked for, without making the others.

    ``kinds`` and ``hops`` (1 to 4) say which questions there are. Entities belong to one split each, by a hash of
    their page's key; every entity that a question names, passes through or answers belongs to its split.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        seed: int = 0,
        *,
        kinds: Sequence[str] = KINDS,
        hops: Sequence[int] = (1, 2, 3, 4),
    ) -> None:
        raise NotImplementedError

    def question(self, split: str, index: int) -> Question:
        """The question at ``index`` of ``split`` (``train`` or ``test``)."""
        raise NotImplementedError


def generate(knowledge: Knowledge, split: str, index: int, seed: int = 0) -> Question:
    """The question at ``index`` of ``split``; who wants many keeps one :class:`Questions`."""
    return Questions(knowledge, seed).question(split, index)
