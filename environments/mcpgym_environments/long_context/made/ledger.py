"""Ledgers: entries of one form among prose. Here code alone finds the answer, and nobody need be asked: a control."""

from __future__ import annotations

from fractions import Fraction

from mcpgym_environments.long_context.made.plan import FACT, Made, Plan
from mcpgym_environments.long_context.made.words import LARGEST, TOWNS, woven
from mcpgym_environments.python_sandbox.problems.answers import NumberAnswer

ENTRY = "[entry {i}: {p}, paid {n}]"
VOID = "[entry {i}: {p}, paid {n}, void]"
VOIDED = 0.2


def _town(plan: Plan) -> str:
    return plan.random("question").choice(TOWNS)


def question(plan: Plan) -> str:
    """A sum."""
    return (
        f'Entries of the form "{ENTRY.format(i=17, p="Aldham", n=40)}" stand in the text; those that end with "void]" '
        f"do not count. What did {_town(plan)} pay in all?"
    )


def make(plan: Plan) -> Made:
    """Entries for all towns."""
    random, facts, total = plan.random("text"), [], 0
    draw, town = random.random, _town(plan)
    for number in range(plan.size // FACT):
        place, paid, void = TOWNS[int(draw() * len(TOWNS))], 1 + int(draw() * LARGEST), draw() < VOIDED
        facts.append((VOID if void else ENTRY).format(i=number, p=place, n=paid))
        if place == town and not void:
            total += paid
    return Made(woven(random, facts, plan.size), NumberAnswer(Fraction(total)))
