"""Wiki search as an environment: a question, an encyclopedia to look it up in, and one answer to hand in."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Mapping, Sequence
from typing import Annotated

from pydantic import Field

from mcpgym import (
    CallRecord,
    Environment,
    LazyTasks,
    ReferencePolicy,
    Task,
    ToolError,
    Transcript,
    reward,
    task_id,
    tool,
)
from mcpgym.errors import UnknownNameError
from mcpgym_environments.thinking import thinks_first
from mcpgym_environments.wiki_search.catalogue import catalogue_of
from mcpgym_environments.wiki_search.config import WikiSearchConfig
from mcpgym_environments.wiki_search.gold import evidence_sections, fewest_calls, lost_evidence
from mcpgym_environments.wiki_search.judge import Judge
from mcpgym_environments.wiki_search.library import Library, PageEntry
from mcpgym_environments.wiki_search.looking import apart
from mcpgym_environments.wiki_search.observation import (
    INSTRUCTIONS,
    cut,
    prompt,
    shorten,
    show_hits,
    show_left,
    show_section,
    show_sections,
)
from mcpgym_environments.wiki_search.questions.question import Question
from mcpgym_environments.wiki_search.scoring import LONGEST_ANSWER, answer_text, exact_match, f1, gold_texts, judge
from mcpgym_environments.wiki_search.shelf import WORLD, shelf_of
from mcpgym_environments.wiki_search.state import Visit

LONGEST_QUERY = 200
LONGEST_ID = 100
LOOKED_OVER = 1_000
"""Of how many questions of a file, in each split, it is said at the start where evidence is not to be found."""
SPARE_CALLS = 10
"""How many calls an episode has beyond its lookups: for the answer, and for calls that cannot be made."""


class WikiSearch(Environment[Task, Visit, WikiSearchConfig]):
    """Look up the answer to a question in an encyclopedia that nobody knows by heart."""

    name = "wiki-search"
    version = "1"
    description = "Answer questions by searching and reading an encyclopedia: generated, or one of your own."
    instructions = INSTRUCTIONS
    icon = (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48' fill='none' stroke-width='4' "
        "stroke-linecap='round'%3E%3Cpath stroke='%23888' d='M6 8h14v30H6zM20 8h10'/%3E"
        "%3Ccircle cx='29' cy='24' r='9' stroke='%2336c'/%3E%3Cpath stroke='%2336c' d='M36 31l8 9'/%3E%3C/svg%3E"
    ).replace(" ", "%20")
    config_class = WikiSearchConfig

    def __init__(self, config: WikiSearchConfig | None = None) -> None:
        super().__init__(config)
        self._shelf = shelf_of(self.config)
        if self.config.corpus != WORLD:
            self._shelf.corpus()  # says at once what is not there; a world always is
        self._questions = catalogue_of(self.config)
        self._judge = Judge(self.config.judge) if self.config.judge else None
        self.splits = tuple(split for split in type(self).splits if self._questions.count(split))  # type: ignore[misc]

    def tasks(self, split: str) -> Sequence[Task]:
        """One question each."""
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        return LazyTasks(self._questions.count(split), lambda index: self._task(split, index))

    def _task(self, split: str, index: int) -> Task:
        question = self._questions.question(split, index)
        text = None if question is None else question.text
        messages = prompt(text, thoughts=self.config.thoughts, lookups=self.config.max_lookups)
        return Task(task_id(split, index), split, messages, _hidden(question))

    def reset(self, task: Task, seed: int) -> Visit | Awaitable[Visit]:
        """Nothing here is random. The first episode waits for the library, which may have to be built."""
        question = self.question_of(task)
        if self._shelf.is_open:
            return Visit(question, self._shelf.library())
        return self._first(question)

    def question_of(self, task: Task) -> Question | None:
        """The question of a task, with its answer; None where somebody asks their own."""
        return self._questions.question(task.split, int(task.id.rpartition("-")[2]))

    def library(self) -> Library:
        """The encyclopedia that all episodes share, built first where the cache has none."""
        return self._shelf.library(told=False)

    async def _first(self, question: Question | None) -> Visit:
        library = await asyncio.to_thread(self._shelf.library)
        if self.config.questions_file and (lost := lost_evidence(library, self._questions.first(LOOKED_OVER))):
            more = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
            print(f"wiki-search: {self.config.questions}: {lost[0]}{more}", file=sys.stderr, flush=True)
        return Visit(question, library)

    @tool(title="Search", read_only=True)
    async def search_pages(
        self,
        visit: Visit,
        query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY), "Names or words to look for."],
    ) -> str:
        """Find pages by names or words. Shows the ids of the best pages, each with the section that fits best."""
        self._spend(visit)
        visit.searched.append(query)
        hits = await apart(visit.library.search, query, self.config.results)
        return self._shown(visit, show_hits(query, hits))

    @tool(title="List sections", read_only=True)
    async def view_sections(
        self,
        visit: Visit,
        page_id: Annotated[str, Field(min_length=1, max_length=LONGEST_ID), "The id of a page, such as p412."],
    ) -> str:
        """List the sections of a page with their ids and lengths."""
        self._spend(visit)
        page, text = await apart(_look_at_page, visit.library, page_id)
        if page is None:
            raise ToolError(self._shown(visit, text))
        visit.viewed.add(page.id)
        return self._shown(visit, text)

    @tool(title="Read a section", read_only=True)
    async def read_section(
        self,
        visit: Visit,
        section_id: Annotated[str, Field(min_length=1, max_length=LONGEST_ID), "The id of a section, such as p412.3."],
        part: Annotated[int, Field(ge=1, le=10_000), "Which part of a long section, from 1."] = 1,
    ) -> str:
        """Read a section. A long one comes in parts; the last line says if there is another."""
        self._spend(visit)
        if (section := await apart(visit.library.section, section_id)) is None:
            raise ToolError(self._shown(visit, await apart(_no_section, visit.library, section_id)))
        parts = cut(section.text, self.config.section_characters)
        if part > len(parts):
            has = "one part" if len(parts) == 1 else f"{len(parts)} parts"
            raise ToolError(self._shown(visit, f"section {section.id} has {has}; there is no part {part}"))
        visit.read.add(section.id)
        return self._shown(visit, show_section(section, parts[part - 1], part, len(parts)))

    @tool(title="Submit the answer", inline=True)
    def submit_answer(
        self,
        visit: Visit,
        answer: Annotated[str, Field(max_length=LONGEST_ANSWER), "The bare answer, such as a name or a number."],
    ) -> str:
        """Hand in your answer. This can be done once, and ends the task."""
        if not answer.strip():
            raise ToolError("an empty answer cannot be submitted; say what you found")
        visit.submitted = answer
        return f'You submitted "{shorten(answer, LONGEST_ANSWER)}". The task is over.'

    def _spend(self, visit: Visit) -> None:
        """Count a search, view or read, if there is one left."""
        if self._bounded:
            spent = ""
            if visit.lookups >= self.config.max_lookups:
                spent = f"you have looked things up {visit.lookups} times"
            elif visit.characters >= self.config.max_characters:
                spent = f"you have read {visit.characters:,} characters"
            if spent:
                raise ToolError(f"{spent}, and may do no more: submit_answer is the only tool left")
        visit.lookups += 1

    def _shown(self, visit: Visit, text: str) -> str:
        """``text`` with what is left, if that is little; its characters are spent."""
        visit.characters += len(text)
        if not self._bounded:
            return text
        lookups, characters = self.config.max_lookups - visit.lookups, self.config.max_characters - visit.characters
        return text + show_left(lookups, characters, self.config.max_characters)

    @property
    def _bounded(self) -> bool:
        return not self._questions.is_open

    def is_done(self, state: Visit) -> bool:
        """Whether an answer was handed in."""
        return state.submitted is not None

    @property
    def max_turns(self) -> int | None:
        """How many calls an episode may take, mistaken ones too; no limit where somebody asks their own questions."""
        return self.config.max_lookups + SPARE_CALLS if self._bounded else None

    @reward(weight=1.0)
    async def correct(self, visit: Visit) -> float | None:
        """1 if the submitted answer is right as a whole, by its type (or, where so configured, to the judge)."""
        if visit.question is None:
            return None
        if visit.submitted is None:
            return 0.0
        right = judge(visit.question.answer, visit.submitted).correct
        if not right and self._judge is not None and self.config.judge_decides:
            right = await self._judge.agrees(visit.question.text, answer_text(visit.question.answer), visit.submitted)
        return float(right)

    @reward(weight=0.2)
    def format(self, transcript: Transcript) -> float:
        """The share of turns that think inside <think>…</think> before they act; 0 where the prompt does not ask it."""
        turns = transcript.assistant_turns
        return sum(map(thinks_first, turns)) / len(turns) if turns and self.config.thoughts else 0.0

    @reward(weight=0.0)
    def evidence(self, visit: Visit) -> float | None:
        """The share of the sections that the answer follows from which were read; none known is null."""
        wanted = evidence_sections(visit)
        return len(wanted & visit.read) / len(wanted) if wanted else None

    @reward(weight=0.0)
    def efficiency(self, visit: Visit, calls: Sequence[CallRecord]) -> float | None:
        """The fewest calls that the evidence takes, over those made; 0 without a right answer."""
        if visit.question is None:
            return None
        if visit.submitted is None or not judge(visit.question.answer, visit.submitted).correct:
            return 0.0
        return min(1.0, fewest_calls(visit) / len(calls))

    @reward(weight=0.0)
    def exact_match(self, visit: Visit) -> float | None:
        """SQuAD's exact match of the normalised texts; only to compare with other work."""
        if visit.question is None:
            return None
        return exact_match(visit.submitted or "", gold_texts(visit.question.answer))

    @reward(weight=0.0)
    def f1(self, visit: Visit) -> float | None:
        """SQuAD's F1 over words; only to compare with other work."""
        if visit.question is None:
            return None
        return f1(visit.submitted or "", gold_texts(visit.question.answer))

    @reward(weight=0.0)
    async def judged(self, visit: Visit) -> float | None:
        """1 if the answer is right by its type or to the judge; null without a judge, or where it does not answer."""
        if visit.question is None or self._judge is None:
            return None
        if visit.submitted is None or judge(visit.question.answer, visit.submitted).correct:
            return float(visit.submitted is not None)
        try:
            right = answer_text(visit.question.answer)
            return float(await self._judge.agrees(visit.question.text, right, visit.submitted))
        except RuntimeError:
            return None

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """``expert``, ``keyword`` and ``random``; see :mod:`mcpgym_environments.wiki_search.reference`."""
        from mcpgym_environments.wiki_search.keyword import Keyword
        from mcpgym_environments.wiki_search.reference import Expert, wander

        return {"expert": Expert(self._questions, self._shelf), "keyword": Keyword(), "random": wander}

    def teacher(self, skill: float) -> ReferencePolicy:
        """The expert, or with probability 1 - ``skill`` the random policy, drawn in each turn."""
        from mcpgym_environments.teaching import mixed
        from mcpgym_environments.wiki_search.reference import Expert, wander

        return mixed(Expert(self._questions, self._shelf), wander, skill)


def _hidden(question: Question | None) -> dict[str, object]:
    """What a task says of its question; no policy sees it."""
    if question is None:
        return {}
    return {
        "question": question.id,
        "kind": question.kind,
        "hops": question.hops,
        "wanted": answer_text(question.answer),
        "evidence": [[evidence.page, evidence.heading] for evidence in question.evidence],
    }


def _look_at_page(library: Library, page_id: str) -> tuple[PageEntry | None, str]:
    """A page and its sections in words; or None, and what to do about an id that there is not."""
    if (page := library.page(page_id)) is not None:
        return page, show_sections(page, library.sections(page.id))
    if (section := library.section(page_id)) is not None:
        return None, f"{section.id} is a section of page {section.page_id}; read_section reads it"
    return None, f'no page "{shorten(page_id)}"; {_nearest(library, page_id)}'


def _no_section(library: Library, section_id: str) -> str:
    """What to do about a section id that there is not."""
    if (page := library.page(section_id)) is None:
        page = library.page(section_id.partition(".")[0])
    if page is None:
        return f'no section "{shorten(section_id)}"; {_nearest(library, section_id)}'
    ids = [section.id for section in library.sections(page.id)]
    return f'no section "{shorten(section_id)}"; page {page.id} ({page.title}) has {_from_to(ids)}'


def _nearest(library: Library, text: str) -> str:
    if (named := library.page_by_title(text)) is not None:
        return f"the page of this name is {named.id}"
    near: list[PageEntry] = [] if _is_number(text) else library.nearest(text)
    if near:
        return "nearest: " + ", ".join(f"{page.id} ({page.title})" for page in near)
    return "search_pages shows the ids that there are"


def _is_number(text: str) -> bool:
    return not text.strip(" pP.#[](){}\"'`").strip("0123456789.")


def _from_to(ids: Sequence[str]) -> str:
    return "no sections" if not ids else ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"
