"""Policies to compare with. They see what any policy sees: the messages.

``expert`` recognises the question by its wording, for it has the list of all questions with their evidence. It goes to
that evidence with the same tools as everybody (searches the page, lists its sections, reads the section) and submits
the answer. It shows that every question can be answered by what the tools show, and what the fewest calls are; it does
not show that one could find the way without the list. ``random`` acts at random on the ids and words that it has seen.
``keyword`` is in :mod:`mcpgym_environments.wiki_search.keyword`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from random import Random

from mcpgym import Message
from mcpgym.messages import assistant, tool_call
from mcpgym_environments.wiki_search.catalogue import Catalogue
from mcpgym_environments.wiki_search.gold import find_section
from mcpgym_environments.wiki_search.library import Library
from mcpgym_environments.wiki_search.questions.question import Question
from mcpgym_environments.wiki_search.scoring import NOT_ANSWERABLE_TEXT, answer_text
from mcpgym_environments.wiki_search.shelf import Shelf

SECTION_ID = re.compile(r"\bp\d+\.\d+\b")
PAGE_ID = re.compile(r"\bp\d+\b(?!\.\d)")
_WORD = re.compile(r"[^\W\d_]{3,}")
NAME = re.compile(r"\b[A-Z][\w'’-]+(?: (?:of |the )*[A-Z][\w'’-]+)*")


class Expert:
    """Follows the evidence of the question with the real tools."""

    def __init__(self, catalogue: Catalogue, shelf: Shelf) -> None:
        self._catalogue = catalogue
        self._shelf = shelf

    def __call__(self, messages: Sequence[Message], random: Random) -> Message:
        """The next step towards the evidence; the answer once all of it was read."""
        asked = question_text(messages)
        question = self._catalogue.find(asked)
        if question is None:
            return call(messages, "I do not know this question.", "submit_answer", answer=NOT_ANSWERABLE_TEXT)
        library = self._shelf.library()
        for thought, tool, arguments in _steps(question, library, shown(messages), made(messages)):
            return call(messages, thought, tool, **arguments)
        return call(messages, "That is the answer.", "submit_answer", answer=answer_text(question.answer))


def _steps(
    question: Question, library: Library, seen: str, done: set[tuple[str, str]]
) -> Iterator[tuple[str, str, dict[str, str]]]:
    """What is still to be done, in order: what one thinks, the tool, its arguments."""
    for evidence in question.evidence:
        section = find_section(library, evidence)
        if section is None or ("read_section", section.id) in done:
            continue
        page = library.page(section.page_id)
        title = evidence.page if page is None else page.title
        if section.page_id not in PAGE_ID.findall(seen):
            for query in (title, f'"{title}"', f"{title} {evidence.heading}"):
                if ("search_pages", query) not in done:
                    yield f"I need the page {title}.", "search_pages", {"query": query[:200]}
        if section.id not in SECTION_ID.findall(seen):
            yield f"Which sections has {title}?", "view_sections", {"page_id": section.page_id}
        yield f"It should stand under {evidence.heading}.", "read_section", {"section_id": section.id}


def wander(messages: Sequence[Message], random: Random) -> Message:
    """Any tool, on any id, word or name that was shown; it answers after about six calls."""
    seen = shown(messages)
    sections, pages = sorted(set(SECTION_ID.findall(seen))), sorted(set(PAGE_ID.findall(seen)))
    acts = ["search_pages", *(["view_sections"] if pages else []), *(["read_section"] * 2 if sections else [])]
    match "submit_answer" if random.random() < 1 / 6 else random.choice(acts):
        case "view_sections":
            return call(messages, "", "view_sections", page_id=random.choice(pages))
        case "read_section":
            return call(messages, "", "read_section", section_id=random.choice(sections))
        case "search_pages":
            words = _WORD.findall(question_text(messages)) or ["the"]
            return call(messages, "", "search_pages", query=" ".join(random.sample(words, min(2, len(words)))))
    names = NAME.findall(seen) or [NOT_ANSWERABLE_TEXT]
    return call(messages, "", "submit_answer", answer=random.choice(names)[:200])


def question_text(messages: Sequence[Message]) -> str:
    """The question, as the user asked it."""
    return next((message["content"] for message in messages if message["role"] == "user"), "")


def shown(messages: Sequence[Message]) -> str:
    """All that the tools have said."""
    return "\n".join(message["content"] for message in messages if message["role"] == "tool")


def made(messages: Sequence[Message]) -> set[tuple[str, str]]:
    """The calls that were made: each tool with its first argument."""
    done = set()
    for message in messages:
        for made_call in message.get("tool_calls", ()):
            try:
                arguments = json.loads(made_call["function"]["arguments"])
            except ValueError:
                continue
            if isinstance(arguments, dict) and arguments:
                done.add((made_call["function"]["name"], str(next(iter(arguments.values())))))
    return done


def call(messages: Sequence[Message], thought: str, tool: str, **arguments: str) -> Message:
    """A turn that calls ``tool``, after thinking ``thought`` where there is one."""
    made_call = tool_call(f"call_{len(messages)}", tool, json.dumps(arguments, ensure_ascii=False))
    return assistant(f"<think>{thought}</think>" if thought else "", [made_call])
