"""Questions about a shelf of notes, and tools to look the answers up: search, read, answer."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Annotated

from mcpgym import Environment, Message, ReferencePolicy, Task, ToolError, reward, task_id, tool
from mcpgym.messages import assistant, tool_call, user
from mcpgym_environments.teaching import mixed
from pydantic import Field

HERE = Path(__file__).parent
PROMPT = "Answer from the notes: search for a page, read it, then give the answer. {question}"


def words(text: str) -> list[str]:
    """The words of a text that are looked for."""
    return [word for word in re.findall(r"\w+", text.lower()) if len(word) > 3]


@dataclass
class Search:
    """The state of one episode: which pages were read, and what was answered."""

    read: set[str] = field(default_factory=set)
    answer: str | None = None


class MyEnv(Environment[Task, Search]):
    """Answer questions from notes."""

    name = "my-env"
    description = "DESCRIPTION"
    instructions = "Find the answer in the notes with search and read, then give it with answer."
    max_turns = 10

    @cached_property
    def pages(self) -> Mapping[str, Mapping[str, str]]:
        """The notes by their ids; all episodes share them."""
        lines = (HERE / "notes.jsonl").read_text("utf-8").splitlines()
        return {page["id"]: page for page in map(json.loads, lines)}

    @cached_property
    def questions(self) -> Sequence[Mapping[str, str]]:
        """Each with its split, the answer, and the page that it stands on."""
        return [json.loads(line) for line in (HERE / "questions.jsonl").read_text("utf-8").splitlines()]

    def tasks(self, split: str) -> Sequence[Task]:
        """The questions of a split."""
        rows = [row for row in self.questions if row["split"] == split]
        return [
            Task(task_id(split, index), split, [user(PROMPT.format(**row))], {"answer": row["answer"]})
            for index, row in enumerate(rows)
        ]

    def reset(self, task: Task, seed: int) -> Search:
        """Nothing read yet; nothing is random."""
        return Search()

    @tool(inline=True)
    def search(self, state: Search, query: Annotated[str, Field(max_length=200), "A few words."]) -> str:
        """Find pages. The answer has a line for each: its id and its title."""
        score = Counter(
            {
                id_: sum(word in words(" ".join(page.values())) for word in words(query))
                for id_, page in self.pages.items()
            }
        )
        found = [f"{id_} {self.pages[id_]['title']}" for id_, count in score.most_common(3) if count]
        return "\n".join(found) or "No page has any of these words."

    @tool(inline=True)
    def read(
        self, state: Search, page: Annotated[str, Field(max_length=50), "The id of a page, as search gives it."]
    ) -> str:
        """Read a page."""
        if page not in self.pages:
            raise ToolError(f"there is no page {page[:50]!r}; search gives ids, such as {next(iter(self.pages))}")
        state.read.add(page)
        return self.pages[page]["text"]

    @tool(inline=True)
    def answer(
        self, state: Search, text: Annotated[str, Field(max_length=200), "The answer, in a word or two."]
    ) -> str:
        """Give the answer; this ends the task."""
        state.answer = text
        return "Noted."

    def is_done(self, state: Search) -> bool:
        """Whether an answer was given."""
        return state.answer is not None

    @reward
    def right(self, state: Search, task: Task) -> float:
        """1 if the answer is the one that is known, whatever its capitals."""
        return float((state.answer or "").strip().rstrip(".").lower() == task.info["answer"].lower())

    @reward(weight=0)
    def pages_read(self, state: Search) -> float:
        """1 if any page was read; only reported."""
        return float(bool(state.read))

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """What to compare with: one that knows where to look, and one that guesses."""
        return {"expert": self._expert, "random": self._guess}

    def teacher(self, skill: float) -> ReferencePolicy:
        """What a model imitates before it learns by itself: the expert, with slips that are not learnt."""
        return mixed(self._expert, self._guess, skill)

    def _expert(self, messages: Sequence[Message], random: Random) -> Message:
        (row,) = (row for row in self.questions if messages[0]["content"] == PROMPT.format(**row))
        steps = [
            ("search", {"query": row["question"]}),
            ("read", {"page": row["page"]}),
            ("answer", {"text": row["answer"]}),
        ]
        return _call(*steps[min(sum(message["role"] == "tool" for message in messages), 2)])

    def _guess(self, messages: Sequence[Message], random: Random) -> Message:
        return _call("answer", {"text": random.choice(self.questions)["answer"]})


def _call(name: str, arguments: Mapping[str, str]) -> Message:
    return assistant("", [tool_call("call_0", name, json.dumps(arguments))])
