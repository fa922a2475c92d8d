"""Plays episodes as a harness would: the policy's messages in, tool answers and the environment's own words back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from mcpgym import Environment, Message, ReferencePolicy
from mcpgym.asking import settle
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.messages import tool_answer


async def open_episode(environment: Environment[Any, Any, Any], split: str, index: int, seed: int = 0) -> Episode:
    return await Episodes({environment.name: environment}).open(environment.name, split=split, index=index, seed=seed)


async def drive(episode: Episode, policy: ReferencePolicy, random: Random) -> list[Message]:
    """The messages of a whole rollout."""
    messages = list(episode.messages)
    while True:
        turn = await settle(policy(tuple(messages), random))
        messages.append(turn)
        for call in turn.get("tool_calls", ()):
            result = await episode.call(call["function"]["name"], json.loads(call["function"]["arguments"]))
            messages.append(tool_answer(call, result.text, is_error=result.is_error))
        if episode.done:
            return messages
        if not turn.get("tool_calls"):
            said: Sequence[Message] | None = await episode.respond(messages)
            if said is None:
                return messages
            messages += said
