"""Whether a submitted answer is right: one typed match of the whole text."""

from __future__ import annotations

from dataclasses import dataclass

from mcpgym_environments.wiki_search.scoring.answers import Answer


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right, and a sentence that says why (without the right answer)."""

    correct: bool
    reason: str


def judge(answer: Answer, submitted: str) -> Verdict:
    """Whether ``submitted`` is ``answer``, as a whole: no lists of guesses, no sentence around it."""
    raise NotImplementedError
