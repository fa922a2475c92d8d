"""The families of tasks by name, and which task is which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcpgym_environments.enumeration import place
from mcpgym_environments.long_context.made import chain, compare, ledger, tally
from mcpgym_environments.long_context.made.plan import SIZES, Family, Made, Plan

FAMILIES: Mapping[str, Family] = {
    "chain": Family(chain.question, chain.make, "who has a thing after it was handed on several times"),
    "tally": Family(tally.question, tally.make, "a total, a maximum or a number of deliveries"),
    "compare": Family(compare.question, compare.make, "two counts of the same houses, far from each other"),
    "ledger": Family(ledger.question, ledger.make, "a sum over entries of one form: code alone suffices"),
}
LEVELS = len(SIZES)
SEEDS = 2**41
"""How many seeds there are: both splits together have fewer tasks, and no seed is taken twice."""


def plan_of(split: str, index: int, families: Sequence[str], levels: Sequence[int]) -> Plan:
    """The plan of a task: consecutive ones go through all families, then through all levels."""
    level = levels[index // len(families) % len(levels)]
    return Plan(families[index % len(families)], level, place(split, index, SEEDS))


def question(plan: Plan) -> str:
    """What is asked about the text of ``plan``."""
    return FAMILIES[plan.family].question(plan)


def make(plan: Plan) -> Made:
    """The text of ``plan`` and the answer; under a second at the highest level."""
    return FAMILIES[plan.family].make(plan)
