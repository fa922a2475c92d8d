"""A policy without understanding: it searches the names in the question, reads what comes up, and takes the sentence
that shares most words with the question. What it scores is what matching words is worth."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from mcpgym import Message
from mcpgym_environments.wiki_search.reference import (
    NAME,
    SECTION_ID,
    call,
    made,
    question_text,
    shown,
)
from mcpgym_environments.wiki_search.scoring import NOT_ANSWERABLE_TEXT

READS = 4
"""How many sections it reads."""

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_YES_OR_NO = re.compile(r"(is|are|was|were|did|does|do|has|have|had|can)\b", re.IGNORECASE)
_DATE = re.compile(r"\b\d{1,2} (?:[A-Z][a-z]+) \d{3,4}\b|\b[12]?\d{3}\b")
_NUMBER = re.compile(r"\b\d[\d,.]*\d|\b\d\b")
_ASKED_WITH = """
which what who whom whose where when why how in on of at the a an is are was were did does do has have had many much
long far old year name give list before after between to for by and or than from it its
"""
_ASKING = frozenset(_ASKED_WITH.split())
"""Words that say what is asked for, and so much else that they find nothing."""


class Keyword:
    """Searches, reads up to :data:`READS` sections that came up, and answers from the most similar sentence."""

    def __call__(self, messages: Sequence[Message], random: Random) -> Message:
        """The next turn."""
        question, seen, done = question_text(messages), shown(messages), made(messages)
        names = [name for name in NAME.findall(question) if name.lower() not in _ASKING]
        queries = [*dict.fromkeys([" ".join(names)[:200], *names, " ".join(sorted(_words(question)))[:200]])]
        for query in queries[:3]:
            if query and ("search_pages", query) not in done:
                return call(messages, "I search what the question names.", "search_pages", query=query)
        read = [id for name, id in done if name == "read_section"]
        fresh = [id for id in dict.fromkeys(SECTION_ID.findall(seen)) if id not in read]
        if fresh and len(read) < READS:
            return call(messages, "I read what came up.", "read_section", section_id=fresh[0])
        text = "\n".join(m["content"] for m in messages if m["role"] == "tool" and m.get("name") == "read_section")
        return call(messages, "This looks like it.", "submit_answer", answer=_answer(question, text)[:200])


def _words(text: str) -> set[str]:
    return {word for word in map(str.lower, _WORD.findall(text)) if word not in _ASKING}


def _answer(question: str, text: str) -> str:
    """What a question of this form asks for, from the sentence that shares most words with it."""
    if _YES_OR_NO.match(question):
        return "yes"
    wanted = _words(question)
    form = question.lower()
    for sentence in sorted(_SENTENCE.split(text), key=lambda sentence: -len(wanted & _words(sentence))):
        if "how " in form:
            found = _NUMBER.findall(sentence)
        elif "when" in form or "year" in form or "date" in form:
            found = _DATE.findall(sentence)
        else:
            found = [
                name for name in NAME.findall(sentence) if not _words(name) & wanted and name.lower() not in _ASKING
            ]
        if found:
            return str(found[0])
    return NOT_ANSWERABLE_TEXT
