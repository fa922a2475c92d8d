"""How a transcript is shown to the Anthropic Messages API.

It takes roles in turns, all answers to a turn's calls first and in one message, no empty text, and the model's own
thoughts as they were signed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mcpgym.messages import Message, ToolCall
from mcpgym_rl.parse import load_object
from mcpgym_rl.policies.chat_format import call_ids, plain_name, sendable
from mcpgym_rl.policies.kept_turns import KeptTurns, Parts

Block = dict[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_THOUGHTS = ("thinking", "redacted_thinking")


def anthropic_tools(tools: Sequence[Mapping[str, Any]]) -> list[Block]:
    """The tools in the API's own fields."""
    return [
        {"name": tool["name"], "description": tool["description"], "input_schema": tool["inputSchema"]}
        for tool in tools
    ]


def anthropic_messages(messages: Sequence[Message], kept: KeptTurns) -> tuple[str, list[Block]]:
    """The system prompt and the messages.

    Args:
        messages: the transcript.
        kept: the model's own turns, as it wrote them.
    """
    ids = call_ids(messages, _ID.fullmatch)
    system: list[str] = []
    made: list[Block] = []
    waiting: list[str] = []
    for place, (message, names) in enumerate(zip(messages, ids, strict=True)):
        role, text = message["role"], message["content"]
        if role == "system" and not made:
            system.append(text)
        elif role == "assistant":
            _append(made, role, _turn(message, kept.of(place, message), names))
            waiting = list(names)
        elif role == "tool":
            _append(made, "user", [_result(message, waiting.pop(0) if waiting else message.get("tool_call_id", ""))])
        else:
            _append(made, role, _texts(text))
    if not made:  # the API wants somebody to have said something
        return "", [{"role": "user", "content": _texts("\n\n".join(system))}]
    return "\n\n".join(system), made


def _append(made: list[Block], role: str, blocks: Sequence[Block]) -> None:
    """Append a message, to the one before where that has the same role; one without content is none."""
    if not blocks:
        return
    if made and made[-1]["role"] == role:
        made[-1]["content"].extend(blocks)
    else:
        made.append({"role": role, "content": list(blocks)})


def _texts(text: str) -> list[Block]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _turn(message: Message, parts: Parts | None, names: Sequence[str]) -> list[Block]:
    calls = iter([_call(call, name) for call, name in zip(message.get("tool_calls", ()), names, strict=True)])
    if parts is None:
        return [*_texts(message["content"]), *calls]
    made: list[Block] = []
    for part in parts:
        if part["type"] == "tool_use":
            made.append({**part, **next(calls)})
        elif part["type"] != "text" or str(part.get("text") or "").strip():
            made.append(dict(part))
    while made and made[-1]["type"] in _THOUGHTS:  # a thought that nothing came of
        made.pop()
    return made


def _call(call: ToolCall, name: str) -> Block:
    tool, arguments = sendable(call)
    return {
        "type": "tool_use",
        "id": name,
        "name": plain_name(tool, 128),
        "input": load_object(arguments),
    }


def _result(message: Message, call_id: str) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": call_id}
    if message["content"].strip():
        block["content"] = message["content"]
    if message.get("is_error"):
        block["is_error"] = True
    return block
