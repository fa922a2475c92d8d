"""Comparisons: the same houses are counted twice, far from each other in the text, and told in many wordings."""

from __future__ import annotations

from fractions import Fraction

from mcpgym_environments.long_context.made.plan import FACT, Made, Plan
from mcpgym_environments.long_context.made.words import (
    HOUSES,
    LARGEST,
    NUMBER,
    PERSON,
    house,
    numbers,
    pattern,
    ways,
    woven,
)
from mcpgym_environments.python_sandbox.problems.answers import Answer, NumberAnswer, WordAnswer

TRUE = (
    "{h} held {n} measures of grain.",
    "They found {n} measures of grain at {h}.",
    "At {h} the grain came to {n} measures.",
    "Of grain {h} had {n} measures to show.",
    "The bins of {h} were good for {n} measures.",
    "Whoever weighed the grain of {h} wrote down {n} measures.",
)
"""Wordings of: {h} has {n} measures of grain."""
FALSE = (
    "{h} had asked for {n} measures of grain.",
    "They had expected {n} measures of grain at {h}.",
    "At {h} the straw came to {n} measures.",
    "Of grain {h} had sold {n} measures the year before.",
    "The bins of {h} would have been good for {n} measures more.",
    "Whoever envied {h} spoke of {n} measures.",
)
"""Wordings of something else."""
ASKED = "How many measures of grain had each house? Answer with a line for each, house = number, or none."
"""What the reader understands."""
COUNTS = ("spring", "harvest", "winter")
BEGINS, ENDS = "Here begins the {} count.", "Here ends the {} count."
KINDS = {
    "gained": "How many houses had more grain at the winter count than at the spring count?",
    "most": "Which house had most measures more at the winter count than it had at the spring count?",
}
SHARE = 0.12
"""How much of the text each count takes."""
LIES = 0.3


def _kind(plan: Plan) -> str:
    return plan.random("question").choice(list(KINDS))


def question(plan: Plan) -> str:
    """What became more."""
    return (
        f"The text tells of three counts of the grain in the same houses. The spring count stands between the lines "
        f'"{BEGINS.format("spring")}" and "{ENDS.format("spring")}" near the beginning of the text, the winter count '
        f"between such lines near its end. They are told in many wordings, each in its own order, and numbers are "
        f"written in several ways; not every number there is of grain that a house had. {KINDS[_kind(plan)]}"
    )


def make(plan: Plan) -> Made:
    """Three counts with much between them."""
    random = plan.random("text")
    draw, said = random.random, ways()
    size = int(plan.size * SHARE)
    names = [house(number) for number in random.sample(range(HOUSES), min(HOUSES, int(size / FACT * (1 - LIES))))]
    held: dict[str, list[int]] = {name: [1 + int(draw() * LARGEST) for _ in COUNTS] for name in names}
    best = max(names, key=lambda name: held[name][2] - held[name][0])
    for name in names:
        if name != best and held[name][2] - held[name][0] == held[best][2] - held[best][0]:
            held[name][2] -= 1  # no two gain most
    gap = woven(random, [], (plan.size - 3 * size) // 4)
    parts = [gap]
    for number, count in enumerate(COUNTS):
        facts = []
        for name in random.sample(names, len(names)):
            text = said[held[name][number]]
            facts.append(TRUE[int(draw() * len(TRUE))].format(h=name, n=text[int(draw() * len(text))]))
            if draw() < LIES / (1 - LIES):
                text, other = said[1 + int(draw() * LARGEST)], names[int(draw() * len(names))]
                facts.append(FALSE[int(draw() * len(FALSE))].format(h=other, n=text[int(draw() * len(text))]))
        parts += [BEGINS.format(count), woven(random, facts, size), ENDS.format(count)]
        parts.append(woven(random, [], (plan.size - 3 * size) // 4))
    answer: Answer
    if _kind(plan) == "gained":
        answer = NumberAnswer(Fraction(sum(winter > spring for spring, _, winter in held.values())))
    else:
        answer = WordAnswer(best)
    return Made("\n".join(parts), answer)


# Reading.

_READ = [pattern(form, n=NUMBER, h=PERSON) for form in TRUE]


def read(asked: str, sentences: list[str]) -> str | None:
    """The answer of a reader to a question of this family; None where it is none."""
    if asked != ASKED:
        return None
    known, lines = numbers(), []
    for sentence in sentences:
        if "measures" in sentence:
            for form in _READ:
                found = form.fullmatch(sentence)
                if found and (number := known.get(found["n"])) is not None:
                    lines.append(f"{found['h']} = {number}")
                    break
    return "\n".join(lines) or "none"
