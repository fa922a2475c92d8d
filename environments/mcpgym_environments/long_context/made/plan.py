"""What a task is made from: a family, a level and a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from mcpgym_environments.python_sandbox.problems.answers import Answer

SIZES = (100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
"""Characters of the text at level 1 to 5."""
FACT = 190
"""Characters of text for each fact, with what stands around it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A task before anything of it is made. The same plan always makes the same text."""

    family: str
    level: int
    seed: int

    @property
    def size(self) -> int:
        """About how many characters the text has."""
        return SIZES[self.level - 1]

    def random(self, what: str) -> Random:
        """A generator for one part of it."""
        return Random(f"{what} {self.family} {self.level} {self.seed}")


class Made(NamedTuple):
    """A text, and the answer to the question about it."""

    text: str
    answer: Answer


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of task.

    Args:
        question: what is asked about the text of a plan; cheap.
        make: the text and the answer.
        about: one line for people.
    """

    question: Callable[[Plan], str]
    make: Callable[[Plan], Made]
    about: str
