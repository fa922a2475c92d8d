"""The environment: a question, and one answer to it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any

from pydantic import Field

from mcpgym import Environment, Message, ReferencePolicy, Requirement, Task, ToolError, reward, task_id, tool
from mcpgym.messages import assistant, system, tool_call, user
from mcpgym_environments.imported.reasoning_gym.config import ReasoningGymConfig
from mcpgym_environments.imported.reasoning_gym.package import EXTRA
from mcpgym_environments.imported.reasoning_gym.source import Entry, Source
from mcpgym_environments.imported.seeds import tasks_of

SYSTEM = """\
Solve the problem. Think it through first, as long as you need. Then call the tool `submit_answer` once, with the \
answer alone, in exactly the form that the problem asks for: no explanation and no other words."""
LONGEST_ANSWER = 10_000
LOOKED_AT = 2_000
"""Tasks of each split that ``expert`` looks through for a question that it has not met."""
_GUESSES = ("0", "1", "2", "10", "42", "yes", "no", "True", "False", "A", "B", "[]")


@dataclass(slots=True)
class Attempt:
    """One episode: the item, and the score of what was submitted."""

    entry: Entry
    submitted: str | None = None
    score: float = 0.0


class ReasoningGym(Environment[Task, Attempt, ReasoningGymConfig]):
    """Generated problems of logic, arithmetic, algebra, games and more, with scorers of their own."""

    name = "reasoning-gym"
    version = "1"
    description = "reasoning-gym's generated problems, over 100 datasets: a question, one answer, their own scorers."
    instructions = SYSTEM
    icon = (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48' fill='none' stroke-width='4' "
        "stroke-linecap='round' stroke-linejoin='round'%3E%3Cpath stroke='%23888' d='M14 36c-6-6-6-18 0-24 6-5 15-5 20 "
        "0 6 6 6 18 0 24'/%3E%3Cpath stroke='%2336c' d='M20 20c0-6 9-6 9 0 0 4-5 4-5 8M24 35v1M18 43h12'/%3E%3C/svg%3E"
    ).replace(" ", "%20")
    config_class = ReasoningGymConfig
    spec_field = "dataset"

    def __init__(self, config: ReasoningGymConfig | None = None) -> None:
        super().__init__(config)
        EXTRA.check()
        self._source = Source(self.config)
        self._known: dict[str, str] = {}

    def tasks(self, split: str) -> Sequence[Task]:
        """One question each, made when it is asked for."""
        return tasks_of(split, self.splits, self.config, self._task)

    def _task(self, split: str, index: int) -> Task:
        entry = self._source.entry(split, index)
        messages = (system(SYSTEM), user(entry["question"]))
        return Task(task_id(split, index), split, messages, {"answer": _solution(entry)})

    def reset(self, task: Task, seed: int) -> Attempt:
        """Nothing here is random."""
        return Attempt(self._source.entry(task.split, int(task.id.rpartition("-")[2])))

    @tool(title="Submit the answer")
    def submit_answer(
        self,
        attempt: Attempt,
        answer: Annotated[str, Field(max_length=LONGEST_ANSWER), "The answer alone, in the form that is asked for."],
    ) -> str:
        """Hand in your answer. It can be done once, and ends the task."""
        if not answer.strip():
            raise ToolError("an empty answer cannot be submitted; say what you found, as in answer=42")
        attempt.score = self._source.score(answer, attempt.entry)
        attempt.submitted = answer
        return "Your answer was submitted. The task is over."

    def is_done(self, state: Attempt) -> bool:
        """Whether an answer was submitted."""
        return state.submitted is not None

    @property
    def max_turns(self) -> int | None:
        """An answer, and some calls that were none."""
        return 5

    @reward(weight=1.0)
    def score(self, attempt: Attempt) -> float:
        """What the dataset's own scorer gives for the answer; some pay a little for a wrong one, or for its form."""
        return attempt.score

    @reward(weight=0.0)
    def solved(self, attempt: Attempt) -> float:
        """1 if the scorer gives all that there is."""
        return float(attempt.score >= 1.0)

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """``expert`` has the answers, where the dataset gives one; ``random`` guesses."""
        return {"random": _guess, "expert": self._answer}

    def _answer(self, messages: Sequence[Message], random: Random) -> Message:
        question = next((message["content"] for message in messages if message["role"] == "user"), "")
        if question not in self._known:
            self._look_for(question)
        return _submit(messages, self._known.get(question) or "I do not know.")

    def _look_for(self, question: str) -> None:
        """Make tasks, of all splits by turns, until one asks this."""
        for index in range(LOOKED_AT):
            for split in self.splits:
                if index < self.size(split):
                    task = self.task_at(split, index)
                    self._known[asked := task.messages[1]["content"]] = task.info["answer"]
                    if asked == question:
                        return

    def conditions(self) -> Mapping[str, Any]:
        """Another version may ask something else."""
        return {"reasoning_gym": EXTRA.version}

    @classmethod
    def requirements(cls) -> Sequence[Requirement]:
        """reasoning-gym's package."""
        return [EXTRA.requirement()]


def _solution(entry: Entry) -> str:
    """The dataset's answer; where it has none, for many would be right, an example of one; else nothing."""
    if isinstance(answer := entry["answer"], str):
        return answer
    metadata = entry.get("metadata", {})
    for name in ("example_correct_answer", "possible_answer", "example_answer"):
        if (found := metadata.get(name)) is not None:
            return found if isinstance(found, str) else json.dumps(found)
    return ""


def _guess(messages: Sequence[Message], random: Random) -> Message:
    return _submit(messages, random.choice(_GUESSES))


def _submit(messages: Sequence[Message], answer: str) -> Message:
    return assistant("", [tool_call(f"call-{len(messages)}", "submit_answer", json.dumps({"answer": answer}))])
