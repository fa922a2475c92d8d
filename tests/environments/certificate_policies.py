"""Deterministic policies of tic-tac-toe, as functions of the messages, and what plays them through real episodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from mcpgym import Environment, Message
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.messages import assistant, tool_call
from mcpgym_environments.tic_tac_toe.reference import POLICIES
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policy import EpisodeContext, Turn
from mcpgym_rl.rollout import rollout
from mcpgym_rl.traces import Trace

Function = Callable[[Sequence[Message]], Message]


class First(Random):
    """Draws the first of everything."""

    def choice(self, seq: Any) -> Any:
        return seq[0]


class FunctionPolicy:
    """A policy that is a function of the messages. It says so, and so has neither a fork nor a need of one."""

    def __init__(self, function: Function, *, deterministic: bool | None = True) -> None:
        self.name = "function"
        self.function = function
        self.asked = 0
        if deterministic is not None:
            self.deterministic = deterministic

    def begin(self, context: EpisodeContext) -> FunctionPolicy:
        return self

    async def act(self, messages: Sequence[Message]) -> Turn:
        self.asked += 1
        return Turn(self.function(messages))

    async def aclose(self) -> None:
        pass


def reference(name: str) -> FunctionPolicy:
    """A reference policy that always takes the first of its choices."""
    return FunctionPolicy(lambda messages: POLICIES[name](messages, First(0)))  # type: ignore[arg-type,return-value]


def call(position: Any, name: str = "play") -> Message:
    return assistant("", [tool_call("call_0", name, json.dumps({"position": position}))])


def but(policy: FunctionPolicy, changes: dict[str, Message]) -> FunctionPolicy:
    """``policy``, but for what it says when the last message contains one of these texts."""

    def function(messages: Sequence[Message]) -> Message:
        for text, turn in changes.items():
            if text in messages[-1]["content"]:
                return turn
        return policy.function(messages)

    return FunctionPolicy(function)


async def play(environment: Environment[Any, Any, Any], policy: Any, **task: Any) -> Trace:
    """A real episode, through the control plane."""
    lane = ControlLane(LocalControl(Episodes({environment.name: environment})))
    try:
        return await rollout(policy, lane, environment=environment.name, **task)
    finally:
        await lane.aclose()
