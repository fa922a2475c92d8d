"""Chains: things are handed from one person to the next, many times, told in any order and in many wordings."""

from __future__ import annotations

import re
from math import gcd
from random import Random
from typing import NamedTuple

from mcpgym_environments.long_context.made.plan import FACT, Made, Plan
from mcpgym_environments.long_context.made.words import PEOPLE, PERSON, pattern, person, woven
from mcpgym_environments.python_sandbox.problems.answers import WordAnswer

THINGS = {
    "the lantern": ("the lantern", "the lamp with the blue glass", "the old light"),
    "the ledger": ("the ledger", "the account book", "the bound book of sums"),
    "the seal": ("the seal", "the signet", "the stamp of the town"),
    "the key": ("the key", "the opener of the north gate", "what unlocks the north gate"),
    "the fiddle": ("the fiddle", "the violin", "the four strings and the bow"),
    "the chart": ("the chart", "the map of the shoals", "the sheet with the coast on it"),
}
"""What is handed on, and how it is called."""
TRUE = (
    "{a} handed {o} on to {b}.",
    "It was {b} to whom {a} passed {o}.",
    "{b} took over {o} from {a} soon after.",
    "In the end {a} parted with {o}, and {b} has it now.",
    "From {a} came {o} to {b}.",
    "{a} left {o} in the keeping of {b}.",
    "What {b} received from {a} was {o}.",
    "Who looks for {o} at the house of {a} is sent on to {b}.",
)
"""Wordings of: {a} gave {o} to {b}."""
FALSE = (
    "{a} thought of handing {o} on to {b}, and did not.",
    "It was not {b} to whom {a} passed {o}.",
    "{b} never took over {o} from {a}, whatever was said.",
    "In the end {a} parted with nothing, though {b} would have had {o}.",
    "{a} would not leave {o} in the keeping of {b}.",
    "{a} showed {o} to {b} and took it home again.",
    "{b} asked {a} for {o} in vain.",
)
"""Wordings of what did not happen."""
LIES = 0.3
"""The share of what is told that did not happen."""
ASKED = "To whom did {a} give {o}? Answer with the name, or none."
"""What the reader understands."""


class _Way(NamedTuple):
    """One thing's way: the j-th to have it is person ``(step * j + first) % PEOPLE``."""

    step: int
    first: int

    def holder(self, turn: int) -> str:
        return person((self.step * turn + self.first) % PEOPLE)


def _ways(plan: Plan) -> list[_Way]:
    random = plan.random("ways")
    made = []
    for _ in THINGS:
        step = random.randrange(1, PEOPLE)
        while gcd(step, PEOPLE) != 1:
            step = random.randrange(1, PEOPLE)
        made.append(_Way(step, random.randrange(PEOPLE)))
    return made


def _facts(plan: Plan) -> int:
    """How often each thing changes hands."""
    return int(plan.size / FACT * (1 - LIES) / len(THINGS))


def _asked(plan: Plan) -> tuple[int, int, int]:
    """Which thing, from which turn on, and how many hands further."""
    random = plan.random("question")
    hops = random.randrange(2, 4) + plan.level
    return random.randrange(len(THINGS)), random.randrange(_facts(plan) - hops), hops


def question(plan: Plan) -> str:
    """Who has it after so many hands."""
    thing, turn, hops = _asked(plan)
    name, start = list(THINGS)[thing], _ways(plan)[thing].holder(turn)
    return (
        f"In the text things change hands: each is handed from one person to the next, and every handing on is told "
        f"once, in any order and in many wordings; a thing may be called by other words. Not all that is told "
        f"happened. {start} has {name}, and it is handed on {hops} times. Who has it then?"
    )


def make(plan: Plan) -> Made:
    """The ways of all things, shuffled, with handings on among them that did not happen."""
    random, facts = plan.random("text"), []
    draw = random.random
    for names, way in zip(THINGS.values(), _ways(plan), strict=True):
        for turn in range(_facts(plan)):
            giver, other = way.holder(turn), way.holder(turn + 1)
            facts.append(_told(random, TRUE, giver, names[int(draw() * len(names))], other))
            if draw() < LIES / (1 - LIES):
                alleged = person(int(draw() * PEOPLE))
                if alleged not in (giver, other):
                    facts.append(_told(random, FALSE, giver, names[int(draw() * len(names))], alleged))
    random.shuffle(facts)
    thing, turn, hops = _asked(plan)
    return Made(woven(random, facts, plan.size), WordAnswer(_ways(plan)[thing].holder(turn + hops)))


def _told(random: Random, wordings: tuple[str, ...], giver: str, thing: str, receiver: str) -> str:
    return wordings[int(random.random() * len(wordings))].format(a=giver, o=thing, b=receiver)


# Reading.

_THING = {called: name for name, all_of_them in THINGS.items() for called in all_of_them}
_O = "|".join(map(re.escape, _THING))
_READ = [pattern(form, a=PERSON, b=PERSON, o=_O) for form in TRUE]
_QUESTION = pattern(ASKED, a=PERSON, o=_O)


def read(asked: str, sentences: list[str]) -> str | None:
    """The answer of a reader to a question of this family; None where it is none."""
    wanted = _QUESTION.fullmatch(asked)
    if wanted is None:
        return None
    giver, thing = wanted["a"], _THING[wanted["o"]]
    for sentence in sentences:
        if giver in sentence:
            for form in _READ:
                found = form.fullmatch(sentence)
                if found and found["a"] == giver and _THING[found["o"]] == thing:
                    return found["b"]
    return "none"
