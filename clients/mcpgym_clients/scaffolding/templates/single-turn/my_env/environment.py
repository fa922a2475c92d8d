"""One question, one answer, no tools: write a number in Roman numerals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from mcpgym import Environment, LazyTasks, Message, ReferencePolicy, Task, Transcript, derive_seed, reward, task_id
from mcpgym.messages import assistant, user
from mcpgym_environments.teaching import mixed

SIGNS = {1000: "M", 900: "CM", 500: "D", 400: "CD", 100: "C", 90: "XC", 50: "L", 40: "XL", 10: "X", 9: "IX", 5: "V"}
SIGNS |= {4: "IV", 1: "I"}
QUESTION = "Write {number} in Roman numerals, and nothing else."


def roman(number: int) -> str:
    """A number from 1 to 3999 in Roman numerals."""
    for value, sign in SIGNS.items():
        if number >= value:
            return sign + roman(number - value)
    return ""


class MyEnv(Environment[Task, None]):
    """Write numbers in Roman numerals."""

    name = "my-env"
    description = "DESCRIPTION"

    def tasks(self, split: str) -> Sequence[Task]:
        """A number from 1 to 3999 each: even ones to learn from, odd ones to be tested on."""

        def make(index: int) -> Task:
            number = 2 * (derive_seed(split, index) % 1999) + (2 if split == "train" else 1)
            return Task(task_id(split, index), split, [user(QUESTION.format(number=number))], {"answer": roman(number)})

        return LazyTasks(1000, make)

    def reset(self, task: Task, seed: int) -> None:
        """Nothing here changes, and nothing is random."""

    @reward
    def right(self, task: Task, transcript: Transcript) -> float:
        """1 if the answer is the numeral."""
        return float((transcript.answer or "").strip() == task.info["answer"])

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        """What to compare with; they see what any policy sees."""
        return {"expert": _right, "random": _any}

    def teacher(self, skill: float) -> ReferencePolicy:
        """What a model imitates before it learns by itself: the expert, with slips that are not learnt."""
        return mixed(_right, _any, skill)


def _right(messages: Sequence[Message], random: Random) -> Message:
    return assistant(roman(int(messages[0]["content"].split()[1])))


def _any(messages: Sequence[Message], random: Random) -> Message:
    return assistant("".join(random.choices("IVXLCDM", k=random.randint(1, 8))))
