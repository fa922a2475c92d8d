"""Reference policies and teachers of a combination: its members', each on its own part."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from mcpgym.combined.naming import Tools, mounted
from mcpgym.combined.prompts import found_over
from mcpgym.combined.views import read_by_policy
from mcpgym.environment import ReferencePolicy
from mcpgym.messages import Message, assistant


def combined_policy(
    policies: Mapping[str, ReferencePolicy], tools: Tools, *, at_random: bool = False
) -> ReferencePolicy:
    """A policy that lets each member's own policy play that member's part: one part after the other, or any at random.

    Args:
        policies: the members' policies by mount.
        tools: every member's tools.
        at_random: whether each turn goes to any part that is not over.
    """

    def act(messages: Sequence[Message], random: Random) -> Any:
        still_open = open_parts(messages, tools)
        if not still_open:
            return assistant("")
        mount = random.choice(still_open) if at_random else still_open[0]
        made = policies[mount](read_by_policy(mount, messages, tools), random)
        if not inspect.isawaitable(made):
            return _mounted(made, mount, still_open)

        async def later() -> Message:
            return _mounted(await made, mount, still_open)

        return later()

    return act


def open_parts(messages: Sequence[Message], tools: Tools) -> list[str]:
    """The parts that nothing in ``messages`` says are over. A tool may print what it likes: it speaks for its own."""
    over: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            lines = message["content"].rsplit("\n", 1)
            mount = str(message.get("name", "")).partition("__")[0]
            over |= {mount} & {*found_over(lines[-1]), *found_over(message["content"][:200].split("\n", 1)[0])}
        elif message["role"] == "user":
            over |= {*found_over(message["content"])}
    return [mount for mount in tools if mount not in over]


def _mounted(message: Message, mount: str, still_open: Sequence[str]) -> Message:
    """A member's turn as one of the combination: its tools' names here, and whom it answers."""
    calls = message.get("tool_calls")
    if not calls:
        text = message["content"]
        return {**message, "content": f"## {mount}\n{text}"} if len(still_open) > 1 else message
    named: Any = [
        {**call, "function": {**call["function"], "name": mounted(mount, call["function"]["name"])}} for call in calls
    ]
    return {**message, "tool_calls": named}
