"""The score of a combination: the weighted mean of its members' totals."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from mcpgym.asking import settle
from mcpgym.combined.parts import CombinedState
from mcpgym.combined.views import own_calls, own_transcript
from mcpgym.environment import Environment
from mcpgym.rewards import Reward, reward

AnyMember = Environment[Any, Any, Any] | type[Environment[Any, Any, Any]]
"""A member, or its class."""


def combined_rewards(members: Mapping[str, AnyMember]) -> dict[str, Any]:
    """A marked method for each reward of each member, by its name in the combination: ``tic_tac_toe.outcome``."""
    return {
        f"{mount}.{item.name}": _method(mount, item, item.weight / len(members))
        for mount, member in members.items()
        for item in member.rewards.values()
    }


def weighed(
    rewards: Mapping[str, Reward], weights: Mapping[str, float], members: Mapping[str, Any]
) -> dict[str, Reward]:
    """``rewards`` with the weights that make the total the weighted mean of the members' totals."""
    whole = sum(weights.values())
    found = {}
    for name, item in rewards.items():
        mount, _, own = name.partition(".")
        weight = weights[mount] / whole * members[mount].rewards[own].weight
        found[name] = dataclasses.replace(item, weight=weight)
    return found


def _method(mount: str, item: Reward, weight: float) -> Any:
    needs_transcript = "transcript" in item.needs

    async def paid(environment: Any, state: CombinedState, calls: Any, transcript: Any = None) -> Any:
        part, tools = state.parts[mount], environment.tool_names
        own = own_calls(part, calls or (), tools)
        given: dict[str, Any] = {}
        for need in item.needs:
            match need:
                case "transcript":
                    given[need] = own_transcript(part, transcript, tools, own)
                case "task":
                    given[need] = part.task
                case "calls":
                    given[need] = own
                case _:
                    given[need] = part.state
        return await settle(item.function(environment.members[mount], **given))

    async def without(environment: Any, state: CombinedState, calls: Any) -> Any:
        return await paid(environment, state, calls)

    made = paid if needs_transcript else without
    made.__name__ = made.__qualname__ = f"{mount}.{item.name}"
    made.__doc__ = item.description
    return reward(weight=weight, low=item.low, high=item.high)(made)
