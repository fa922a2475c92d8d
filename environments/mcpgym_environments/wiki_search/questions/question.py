"""A question with its answer, and where the answer stands."""

from __future__ import annotations

from dataclasses import dataclass

from mcpgym_environments.wiki_search.knowledge import Evidence
from mcpgym_environments.wiki_search.scoring.answers import Answer


@dataclass(frozen=True, slots=True)
class Step:
    """One fact on the way to the answer: the subject's page, the relation, and its value as text."""

    page: str
    relation: str
    value: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question: ``kind`` is one of :data:`KINDS` (or ``user``), ``hops`` how many facts in a row it takes.

    ``evidence`` are the sections that the answer follows from, in the order of reading them, each once; ``path`` the
    facts themselves. For a question that is not answerable they show where one would have looked.
    """

    id: str
    text: str
    answer: Answer
    kind: str
    hops: int
    evidence: tuple[Evidence, ...] = ()
    path: tuple[Step, ...] = ()


KINDS: tuple[str, ...] = (
    "chain",
    "comparison",
    "superlative",
    "aggregation",
    "list",
    "date arithmetic",
    "number arithmetic",
    "negation",
    "yes or no",
    "not answerable",
)
"""Every kind of generated question."""
