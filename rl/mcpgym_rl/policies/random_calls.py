"""``random`` for environments that ship none: it calls some tool with arguments that its schema accepts."""

from __future__ import annotations

import json
import math
import string
from collections.abc import Mapping, Sequence
from copy import copy
from random import Random
from typing import Any

from mcpgym.messages import Message, assistant, tool_call
from mcpgym_rl.policy import EpisodeContext, Turn

_LONGEST = 4
"""How many items a list without a bound of its own gets, at most."""
_WORD = 8
"""How many letters a text without a bound of its own gets, at most."""
_NUMBER = 10
"""How far a number goes beyond its one bound, or from 0 when it has none."""


class RandomCalls:
    """Every turn calls one tool, drawn uniformly, with drawn arguments; without tools it answers nothing."""

    name = "random"

    def begin(self, context: EpisodeContext) -> RandomCallsSession:
        """A session with its own generator."""
        return RandomCallsSession(context.tools, Random(context.seed))

    async def aclose(self) -> None:
        """Nothing is held."""


class RandomCallsSession:
    """Random calls on one rollout."""

    def __init__(self, tools: Sequence[Mapping[str, Any]], random: Random) -> None:
        self._tools = tools
        self._random = random
        self._turn = 0

    async def act(self, messages: Sequence[Message]) -> Turn:
        """One random call."""
        if not self._tools:
            return Turn(assistant(""))
        self._turn += 1
        tool = self._random.choice(self._tools)
        arguments = json.dumps(sample(tool["inputSchema"], self._random))
        return Turn(assistant("", [tool_call(f"call_{self._turn}", tool["name"], arguments)]))

    def fork(self) -> RandomCallsSession:
        """A session of its own from here on, with the same draws to come."""
        forked = copy(self)
        forked._random = copy(self._random)
        return forked

    async def aclose(self) -> None:
        """Nothing is held."""


def sample(schema: Mapping[str, Any], random: Random) -> Any:
    """A value that ``schema`` accepts, which is at the fixed point of :mod:`mcpgym.schema`.

    Optional fields come half the time.
    """
    if "enum" in schema:
        return random.choice(schema["enum"])
    match schema.get("type"):
        case "object":
            required = schema.get("required", ())
            fields = schema.get("properties", {}).items()
            return {name: sample(inner, random) for name, inner in fields if name in required or random.random() < 0.5}
        case "array":
            low = schema.get("minItems", 0)
            size = random.randint(low, schema.get("maxItems", low + _LONGEST))
            return [sample(schema.get("items", {}), random) for _ in range(size)]
        case "integer":
            low, high = _range(schema)
            return random.randint(math.ceil(low), math.floor(high))
        case "number":
            return random.uniform(*_range(schema))
        case "boolean":
            return random.random() < 0.5
        case _:
            low = schema.get("minLength", 1)
            size = random.randint(low, schema.get("maxLength", low + _WORD))
            return "".join(random.choices(string.ascii_lowercase, k=size))


def _range(schema: Mapping[str, Any]) -> tuple[float, float]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        low = min(0, high - _NUMBER) if high is not None else 0
    return low, low + _NUMBER if high is None else high
