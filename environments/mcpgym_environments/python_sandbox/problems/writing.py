"""How problems with an answer are put into words and into programs."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from textwrap import dedent
from typing import TypeVar

from mcpgym_environments.python_sandbox.problems.answers import NumberAnswer

_T = TypeVar("_T")
_WHOLE = ("Submit the number.", "Submit one whole number.", "The answer is a whole number.", "Submit it as an integer.")


def pick(random: Random, *wordings: str) -> str:
    """One of several ways to say the same."""
    return wordings[random.randrange(len(wordings))]


def file_name(random: Random, ending: str, *stems: str) -> str:
    """A name for a file, with a number so that few texts name the same one."""
    return f"{pick(random, *stems)}-{random.randint(1_000, 999_999)}.{ending}"


def whole(value: int) -> NumberAnswer:
    """A whole number as an answer."""
    return NumberAnswer(Fraction(value))


def ask_whole(random: Random) -> str:
    """The sentence that says that a whole number is wanted."""
    return pick(random, *_WHOLE)


def listed(items: Sequence[object], last: str = "and") -> str:
    """``1, 2 and 3``."""
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def program(code: str, **values: object) -> str:
    """A program: a line for each of ``values``, then ``code``."""
    return "".join(f"{name} = {value!r}\n" for name, value in values.items()) + dedent(code).strip("\n") + "\n"


def mistaken(code: str, right: str, wrong: str) -> str:
    """``code`` with one mistake in it: ``wrong`` where ``right`` stands."""
    if code.count(right) != 1:
        raise ValueError(f"{right!r} is there {code.count(right)} times, not once")
    return code.replace(right, wrong)


def shuffled(random: Random, items: Sequence[_T]) -> list[_T]:
    """``items`` in another order."""
    return random.sample(items, len(items))
