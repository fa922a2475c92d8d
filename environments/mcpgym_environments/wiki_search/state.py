"""What an episode remembers: what was searched and read, what it cost, and what was submitted."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcpgym_environments.wiki_search.library import Library
from mcpgym_environments.wiki_search.questions.question import Question


@dataclass(slots=True)
class Visit:
    """One episode at the library, which all episodes share; ``question`` is None where somebody asks their own.

    ``lookups`` counts searches, views and reads, ``characters`` what they have shown. ``read`` has the ids of sections,
    ``viewed`` those of pages; ``submitted`` is None until an answer was handed in.
    """

    question: Question | None
    library: Library
    lookups: int = 0
    characters: int = 0
    searched: list[str] = field(default_factory=list)
    viewed: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    submitted: str | None = None
