"""Reverse a sentence, character by character: one question, one answer, no tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Self

from pydantic import Field, model_validator

from mcpgym import Config, Environment, LazyTasks, Message, ReferencePolicy, Task, Transcript, reward, task_id
from mcpgym.errors import UnknownNameError
from mcpgym.messages import assistant, system, user
from mcpgym_environments.enumeration import place
from mcpgym_environments.reverse_text.sentences import SENTENCES, sentence
from mcpgym_environments.reverse_text.subsequence import similarity
from mcpgym_environments.tags import last_tag
from mcpgym_environments.teaching import mixed

TAG = "reversed_text"
LONGEST = 4
"""An answer more than this many times as long as the right one is no attempt and scores 0, whatever it contains."""

SYSTEM = f"""\
Reverse the text you are given, character by character: the last character comes first. Spaces, capitals and \
punctuation count. Put the result, and nothing else, inside <{TAG}> and </{TAG}>."""


class ReverseTextConfig(Config):
    """How many tasks there are; both splits together have at most as many as there are sentences."""

    train_tasks: int = Field(default=10_000, ge=1, le=SENTENCES)
    """How many tasks the train split has."""
    test_tasks: int = Field(default=1_000, ge=1, le=SENTENCES)
    """How many tasks the test split has."""

    @model_validator(mode="after")
    def _enough(self) -> Self:
        if self.train_tasks + self.test_tasks > SENTENCES:
            raise ValueError(f"train_tasks and test_tasks together must not be above {SENTENCES}")
        return self


@dataclass(frozen=True, slots=True)
class Reversal:
    """One episode: the right answer."""

    answer: str


class ReverseText(Environment[Task, Reversal, ReverseTextConfig]):
    """The smallest environment: no tools, one turn."""

    name = "reverse-text"
    version = "1"
    description = "Reverse a sentence character by character; one turn, no tools."
    instructions = SYSTEM
    icon = (
        "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 48 48' fill='none' stroke='%2336c' "
        "stroke-width='3' stroke-linecap='round' stroke-linejoin='round'%3E%3Cpath d='M42 15H8m8-8-8 8 8 8'/%3E"
        "%3Cpath stroke='%23888' d='M6 33h34m-8-8 8 8-8 8'/%3E%3C/svg%3E"
    ).replace(" ", "%20")
    config_class = ReverseTextConfig

    def tasks(self, split: str) -> Sequence[Task]:
        """One sentence each, all different."""
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        count = self.config.train_tasks if split == "train" else self.config.test_tasks
        return LazyTasks(count, lambda index: _task(split, index))

    def reset(self, task: Task, seed: int) -> Reversal:
        """Nothing here is random."""
        return Reversal(task.info["answer"])

    @reward
    def likeness(self, state: Reversal, transcript: Transcript) -> float:
        """How alike answer and reversed text are: twice their longest common subsequence over both lengths.

        The answer is what stands in the last pair of tags, without spaces around it. Only the exact text gives 1;
        no tags, or an answer more than four times too long, give 0.
        """
        given = last_tag(transcript.answer or "", TAG)
        if not given or len(given) > LONGEST * len(state.answer):
            return 0.0
        return similarity(state.answer, given)

    @reward(weight=0)
    def exact(self, state: Reversal, transcript: Transcript) -> float:
        """1 if the answer is the reversed text to the letter; not part of the total."""
        return float(last_tag(transcript.answer or "", TAG) == state.answer)

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """``random`` shuffles the characters; ``expert`` reverses them."""
        return {"random": _shuffle, "expert": _reverse}

    def teacher(self, skill: float) -> ReferencePolicy:
        """The expert, or with probability 1 - ``skill`` the random policy, drawn in each turn."""
        return mixed(_reverse, _shuffle, skill)


def _task(split: str, index: int) -> Task:
    text = sentence(place(split, index, SENTENCES))
    return Task(task_id(split, index), split, (system(SYSTEM), user(text)), {"answer": text[::-1]})


def _shuffle(messages: Sequence[Message], random: Random) -> Message:
    text = messages[-1]["content"]
    return assistant(f"<{TAG}>{''.join(random.sample(text, len(text)))}</{TAG}>")


def _reverse(messages: Sequence[Message], random: Random) -> Message:
    return assistant(f"<{TAG}>{messages[-1]['content'][::-1]}</{TAG}>")
