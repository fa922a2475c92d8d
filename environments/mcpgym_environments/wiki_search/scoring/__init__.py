"""Typed scoring: what an answer is, and whether what was submitted is that answer."""

from mcpgym_environments.wiki_search.scoring.answers import (
    LONGEST_ANSWER,
    NOT_ANSWERABLE_TEXT,
    UNANSWERABLE,
    Answer,
    AnyAnswer,
    DateAnswer,
    EntityAnswer,
    ListAnswer,
    NumberAnswer,
    TextAnswer,
    Unanswerable,
    YesNoAnswer,
)
from mcpgym_environments.wiki_search.scoring.judging import Verdict, judge

__all__ = [
    "LONGEST_ANSWER",
    "NOT_ANSWERABLE_TEXT",
    "UNANSWERABLE",
    "Answer",
    "AnyAnswer",
    "DateAnswer",
    "EntityAnswer",
    "ListAnswer",
    "NumberAnswer",
    "TextAnswer",
    "Unanswerable",
    "Verdict",
    "YesNoAnswer",
    "judge",
]
