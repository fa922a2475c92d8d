"""Teachers made of two policies: mostly the good one, and now and then a slip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from mcpgym import Message

Policy = Callable[[Sequence[Message], Random], Message]


def mixed(good: Policy, poor: Policy, skill: float) -> Policy:
    """A policy that acts as ``good`` with probability ``skill`` in each turn, and as ``poor`` otherwise.

    The slips have the weight 0: one learns from what follows them, not from them.
    """

    def act(messages: Sequence[Message], random: Random) -> Message:
        if random.random() < skill:
            return good(messages, random)
        return {**poor(messages, random), "weight": 0}

    return act
