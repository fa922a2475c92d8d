"""Teachers made of two policies: now the one, now the other."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from random import Random

from mcpgym import Message, ReferencePolicy


def mixed(good: ReferencePolicy, poor: ReferencePolicy, skill: float) -> ReferencePolicy:
    """A policy that acts as ``good`` with probability ``skill`` in each turn, and as ``poor`` otherwise."""

    def act(messages: Sequence[Message], random: Random) -> Message | Awaitable[Message]:
        return (good if random.random() < skill else poor)(messages, random)

    return act
