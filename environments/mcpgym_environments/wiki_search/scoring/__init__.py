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
from mcpgym_environments.wiki_search.scoring.judging import Verdict, judge, says_not_answerable
from mcpgym_environments.wiki_search.scoring.squad import exact_match, f1
from mcpgym_environments.wiki_search.scoring.writing import (
    answer_from_json,
    answer_text,
    answer_to_json,
    gold_texts,
)

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
    "answer_from_json",
    "answer_text",
    "answer_to_json",
    "exact_match",
    "f1",
    "gold_texts",
    "judge",
    "says_not_answerable",
]
