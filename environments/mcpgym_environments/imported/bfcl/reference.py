"""The policies that BFCL's tasks ship with. ``expert`` has the solutions, and knows a task by what its user says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random

from mcpgym import Message
from mcpgym.messages import assistant, tool_call
from mcpgym.tools import Tool
from mcpgym_environments.imported.bfcl.data import Row
from mcpgym_environments.imported.bfcl.judging import read_calls
from mcpgym_environments.imported.drawing import drawn


def expert(rows: Mapping[str, Row], messages: Sequence[Message]) -> Message:
    """The next call of the solution, or a word to the user when the turn is done."""
    said = [message["content"] for message in messages if message["role"] == "user"]
    row = next((row for row in rows.values() if _fits(row, said)), None)
    if row is None:
        return assistant("I cannot help with that.")
    calls = list(read_calls(row.gold[len(said) - 1], row.apis))
    made = 0
    for message in reversed(messages):
        if message["role"] == "user":
            break
        made += len(message.get("tool_calls") or ())
    if made >= len(calls):
        return assistant("Done." if calls else "I cannot do that with what I have.")
    call = calls[made]
    return assistant("", [tool_call(f"call-{len(messages)}", call.function, json.dumps(call.arguments))])


def _fits(row: Row, said: Sequence[str]) -> bool:
    turns = [message["content"] for turn in row.turns for message in turn]
    return len(said) <= len(turns) and turns[: len(said)] == list(said)


def random_calls(tools: Mapping[str, Tool], messages: Sequence[Message], random: Random) -> Message:
    """Any call with arguments that fit, or now and then the end of a turn."""
    if random.random() < 0.3:
        return assistant("Done.")
    tool = tools[random.choice(sorted(tools))]
    arguments = drawn(tool.parser.schema, random)
    return assistant("", [tool_call(f"call-{len(messages)}", tool.name, json.dumps(arguments))])
