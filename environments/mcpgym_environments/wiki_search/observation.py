"""Everything the policy reads: the prompt, and the answers of the tools, short enough for small contexts."""

from __future__ import annotations

from collections.abc import Sequence

from mcpgym import Message
from mcpgym.messages import system, user
from mcpgym_environments.wiki_search.library import Hit, PageEntry, SectionEntry, SectionText
from mcpgym_environments.wiki_search.scoring.answers import LONGEST_ANSWER, NOT_ANSWERABLE_TEXT

_LOOKING = """\
`search_pages` finds pages by words; `view_sections` lists the sections of a page; `read_section` gives the text of a \
section"""
_TOOLS = f"{_LOOKING}; `submit_answer` hands in your answer, once, and ends the task."
_ANSWER = f"""\
Submit the bare answer, at most {LONGEST_ANSWER} characters: a name, a number with its unit, a date, yes or no, or \
items with commas between them. If the encyclopedia does not say, submit: {NOT_ANSWERABLE_TEXT}"""

SYSTEM = f"""\
Answer the question from an encyclopedia. What you remember from elsewhere is of no use: look everything up with the \
tools. {_TOOLS}
{_ANSWER}"""
THOUGHTS = """
In every turn, think first, briefly, inside <think> and </think>: What do I know, and what must I look up next? Then \
call one tool."""
OPEN_PROMPT = f"""\
Somebody asks you questions; answer them from an encyclopedia, and say on which page it stands. {_LOOKING}. \
`submit_answer` ends the visit; there is no need for it."""

INSTRUCTIONS = f"""\
An encyclopedia to look things up in. {_TOOLS} A search shows the ids of pages (p412) and of sections (p412.3): copy \
them exactly. A task asks one question. {_ANSWER}"""

WARN_LOOKUPS = 5
"""When so many lookups are left it is said."""
WARN_CHARACTERS = 0.8
"""From this share of the characters on it is said how many are left."""


def prompt(question: str | None, *, thoughts: bool, lookups: int) -> tuple[Message, ...]:
    """The task in words; no question is an open visit, which has no limits."""
    if question is None:
        return (user(OPEN_PROMPT),)
    limit = f"\nYou may search, view and read {lookups} times in all."
    return (system(SYSTEM + (THOUGHTS if thoughts else "") + limit), user(question))


def show_hits(query: str, hits: Sequence[Hit]) -> str:
    """A search's pages, best first: page id and title, then the section that fits best with some of its words."""
    if not hits:
        return f'Nothing found for "{shorten(query)}". Try fewer or other words, or one name alone.'
    return "\n".join(f"{hit.page_id} {hit.title}\n  {_place(hit)}: {one_line(hit.snippet)}" for hit in hits)


def _place(hit: Hit) -> str:
    return hit.section_id if hit.heading in ("", hit.title) else f"{hit.section_id} {hit.heading}"


def show_sections(page: PageEntry, sections: Sequence[SectionEntry]) -> str:
    """A page's sections with their ids, those under others indented."""
    lines = [
        f"{'  ' * max(section.level - 1, 0)}{section.id} {section.heading} ({section.characters:,} characters)"
        for section in sections
    ]
    return "\n".join([f"{page.id} {page.title}", *lines])


def show_section(section: SectionText, text: str, part: int, parts: int) -> str:
    """A part of a section's text under its name."""
    name = section.title if section.heading in ("", section.title) else f"{section.title}, {section.heading}"
    if parts == 1:
        return f"{section.id} {name}\n{text}"
    more = f"\n(more in part {part + 1})" if part < parts else "\n(the end)"
    return f"{section.id} {name}, part {part} of {parts}\n{text}{more}"


def cut(text: str, size: int) -> list[str]:
    """``text`` in parts of at most ``size`` characters, cut between paragraphs, lines, sentences or words if possible.

    Put together they are the text again, but for white space at the cuts.
    """
    parts = []
    rest = text.strip()
    while len(rest) > size:
        end = _place_to_cut(rest, size)
        parts.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return [*parts, rest]


def _place_to_cut(text: str, size: int) -> int:
    for mark in ("\n\n", "\n", ". ", " "):
        end = text.rfind(mark, size // 3, size)
        if end > 0:
            return end + len(mark)
    return size


def show_left(lookups: int, characters: int, of: int) -> str:
    """A last line that says what is left of the budgets when it is little; else nothing."""
    left = []
    if lookups <= WARN_LOOKUPS:
        left.append(f"{lookups} lookup{'' if lookups == 1 else 's'} left")
    if characters <= of * (1 - WARN_CHARACTERS):
        left.append(f"{max(characters, 0):,} characters left to read")
    spent = lookups <= 0 or characters <= 0
    return f"\n[{', '.join(left)}{': submit your answer' if spent else ''}]" if left else ""


def one_line(text: str) -> str:
    """``text`` without line breaks or double spaces."""
    return " ".join(text.split())


def shorten(text: str, limit: int = 60) -> str:
    """The beginning of what a policy wrote, in one line."""
    text = one_line(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
