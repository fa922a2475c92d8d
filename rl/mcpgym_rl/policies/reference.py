"""Policies that an environment ships, as policies of a rollout."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from random import Random

from mcpgym.asking import settle
from mcpgym.environment import ReferencePolicy
from mcpgym.messages import Message
from mcpgym_rl.policy import EpisodeContext, Turn


class Reference:
    """A reference policy of an environment (``random``, ``expert``), seeded anew for each rollout."""

    def __init__(self, name: str, function: ReferencePolicy) -> None:
        self.name = name
        self.function = function

    def begin(self, context: EpisodeContext) -> ReferenceSession:
        """A session with its own generator."""
        return ReferenceSession(self.function, Random(context.seed))

    async def aclose(self) -> None:
        """Nothing is held."""


class ReferenceSession:
    """A reference policy at work on one rollout."""

    def __init__(self, function: ReferencePolicy, random: Random) -> None:
        self._function = function
        self._random = random

    async def act(self, messages: Sequence[Message]) -> Turn:
        """The next assistant turn."""
        return Turn(await settle(self._function(messages, self._random)))

    def fork(self) -> ReferenceSession:
        """A session of its own from here on, with the same draws to come."""
        return ReferenceSession(self._function, copy(self._random))

    async def aclose(self) -> None:
        """Nothing is held."""
