"""Tallies: crates arrive in towns, told in many wordings, among others that did not arrive."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction

from mcpgym_environments.long_context.made.plan import FACT, Made, Plan
from mcpgym_environments.long_context.made.words import LARGEST, NUMBER, TOWN, TOWNS, numbers, pattern, ways, woven
from mcpgym_environments.python_sandbox.problems.answers import NumberAnswer

GOODS = {
    "salt": ("salt", "white salt", "what the salt pans gave"),
    "wool": ("wool", "fleece", "what had been shorn"),
    "wine": ("wine", "claret", "red from the south"),
    "tallow": ("tallow", "fat for candles", "candle stuff"),
}
"""What is brought, and how it is called."""
TRUE = (
    "{n} crates of {g} reached {p} before dark.",
    "At {p} they unloaded {n} crates of {g}.",
    "{p} took in {n} crates of {g} that week.",
    "The carters brought {p} its {g}, {n} crates in all.",
    "When the doors closed {p} was richer by {n} crates of {g}.",
    "Of {g} there came {n} crates to {p}.",
)
"""Wordings of: {n} crates of {g} arrived at {p}."""
FALSE = (
    "{n} crates of {g} never reached {p}.",
    "At {p} they had hoped for {n} crates of {g}.",
    "{p} sent back {n} crates of {g} unopened.",
    "The carters promised {p} its {g}, {n} crates in all, and turned round at the ford.",
    "{p} still had room for {n} crates of {g}.",
    "Of {g} there left {n} crates from {p}.",
)
"""Wordings of what did not arrive."""
LIES = 0.4
ASKED = "Which numbers of crates of {g} arrived at {p}? Answer with the numbers, with commas between them, or none."
"""What the reader understands."""
KINDS: Mapping[str, tuple[str, Callable[[list[int]], int]]] = {
    "total": ("How many crates of {g} arrived at {p} in all?", sum),
    "largest": ("How many crates had the largest delivery of {g} that arrived at {p}?", max),
    "deliveries": ("How many deliveries of {g} arrived at {p}?", len),
}
_PLACES = 6


def _asked(plan: Plan) -> tuple[str, str, str, list[str]]:
    """Which goods, which town and what of them, and all towns of the text."""
    random = plan.random("question")
    towns = random.sample(TOWNS, _PLACES)
    return random.choice(list(GOODS)), random.choice(towns), random.choice(list(KINDS)), towns


def question(plan: Plan) -> str:
    """A total, a largest or a number of deliveries."""
    goods, town, kind, _ = _asked(plan)
    return (
        "In the text goods are brought to towns by the crate, told in many wordings; goods may be called by other "
        "words, and numbers are written in several ways. Not all that is told arrived. "
        + KINDS[kind][0].format(g=goods, p=town)
    )


def make(plan: Plan) -> Made:
    """Deliveries of all goods to all towns; some did not arrive."""
    goods, town, kind, towns = _asked(plan)
    random, facts, arrived = plan.random("text"), [], []
    draw, said, names = random.random, ways(), list(GOODS.items())

    def tell(name: str, called: tuple[str, ...], place: str) -> None:
        number = 1 + int(draw() * LARGEST)
        true = draw() >= LIES
        form = TRUE if true else FALSE
        text = said[number][int(draw() * len(said[number]))]
        sentence = form[int(draw() * len(form))].format(n=text, g=called[int(draw() * len(called))], p=place)
        facts.append(sentence[0].upper() + sentence[1:])
        if true and name == goods and place == town:
            arrived.append(number)

    for _ in range(plan.size // FACT):
        name, called = names[int(draw() * len(names))]
        tell(name, called, towns[int(draw() * _PLACES)])
    while not arrived:  # there is always something to be found
        tell(goods, GOODS[goods], town)
    random.shuffle(facts)
    return Made(woven(random, facts, plan.size), NumberAnswer(Fraction(KINDS[kind][1](arrived))))


# Reading.

_GOODS = {called: name for name, all_of_them in GOODS.items() for called in all_of_them}
_G = "|".join(sorted(map(re.escape, _GOODS), key=len, reverse=True))
_READ = [pattern(form, n=NUMBER, p=TOWN, g=_G) for form in TRUE]
_QUESTION = pattern(ASKED, p=TOWN, g=_G)


def read(asked: str, sentences: list[str]) -> str | None:
    """The answer of a reader to a question of this family; None where it is none."""
    wanted = _QUESTION.fullmatch(asked)
    if wanted is None:
        return None
    goods, town, known, arrived = _GOODS[wanted["g"]], wanted["p"], numbers(), []
    for sentence in sentences:
        if "crates" not in sentence or town not in sentence:
            continue
        for form in _READ:
            found = form.fullmatch(sentence)
            if found and found["p"] == town and _GOODS[found["g"]] == goods:
                number = known.get(found["n"][0].lower() + found["n"][1:])
                if number is not None:
                    arrived.append(str(number))
                    break
    return ", ".join(arrived) or "none"
