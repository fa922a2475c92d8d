"""How a transcript is shown to an OpenAI-compatible endpoint, in each of the three tool modes.

``native`` sends the tools and calls in the API's own fields. ``guided`` and ``text`` render both into plain messages,
for endpoints that know nothing of tools; then the answer is one JSON object (``guided``) or text with ``<tool_call>``
blocks. Only fields that the API defines are ever sent.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from mcpgym.messages import Message, ToolCall, assistant, tool_call
from mcpgym_rl.parse import load_object, write_text

Mode = Literal["native", "guided", "text"]

_ODD = re.compile(r"[^a-zA-Z0-9_-]")

TEXT_RULES = """You can use tools. They are described inside <tools></tools>, one JSON object a line:
<tools>
{tools}
</tools>
To use a tool, write a JSON object with its name and arguments inside <tool_call></tool_call>:
<tool_call>
{{"name": "<name of the tool>", "arguments": {{<its arguments>}}}}
</tool_call>
Each answer then comes inside <tool_response></tool_response>. When you need no tool any more, answer without one."""

GUIDED_RULES = """You can use tools. They are described here, one JSON object a line:
{tools}
Write one JSON object and nothing else. To use a tool: {call}
To answer without a tool: {{"act": {{"answer": "<your answer>"}}}}
Each tool's answer comes back inside <tool_response></tool_response>."""


def native_tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tools in the chat-completions format."""
    return [
        {
            "type": "function",
            "function": {"name": t["name"], "description": t["description"], "parameters": t["inputSchema"]},
        }
        for t in tools
    ]


def native_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The transcript in the API's own fields, every call as it can be sent."""
    ids = call_ids(messages, lambda name: len(name) <= 40)
    made: list[dict[str, Any]] = []
    waiting: list[str] = []
    for message, given in zip(messages, ids, strict=True):
        shown: dict[str, Any] = {"role": message["role"], "content": message["content"]}
        if calls := message.get("tool_calls"):
            waiting = given
            shown["tool_calls"] = [tool_call(name, *sendable(call)) for call, name in zip(calls, given, strict=True)]
        elif message["role"] == "tool":
            shown["tool_call_id"] = waiting.pop(0) if waiting else message.get("tool_call_id", "")
        made.append(shown)
    return made


def call_ids(messages: Sequence[Message], fits: Callable[[str], object]) -> list[list[str]]:
    """The ids with which each message's calls are sent: their own, or others for all of them where one comes twice in
    the conversation or does not fit the API. Servers refuse the whole conversation otherwise.

    Args:
        messages: the transcript.
        fits: whether the API takes an id.
    """
    own = [[call["id"] for call in message.get("tool_calls", ())] for message in messages]
    given = [name for names in own for name in names]
    if len(set(given)) == len(given) and all(map(fits, given)):
        return own
    count = itertools.count()
    return [[f"call_{next(count)}" for _ in names] for names in own]


def sendable(call: ToolCall) -> tuple[str, str]:
    """The name and the arguments of a call as servers take them: arguments that are no JSON object are wrapped in one,
    for they refuse the whole conversation otherwise."""
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    try:
        load_object(arguments)
    except ValueError:
        arguments = json.dumps({"malformed": arguments}) if arguments.strip() else "{}"
    return name if name.strip() else "unnamed", arguments


def plain_name(name: str, longest: int) -> str:
    """A tool's name as APIs take it that know letters, digits, ``_`` and ``-``; a model may make others up."""
    return _ODD.sub("_", name)[:longest]


def plain_messages(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]], mode: Mode, *, think: bool
) -> list[dict[str, Any]]:
    """The transcript as plain messages, the tools described in the system message."""
    made: list[dict[str, Any]] = []
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "assistant":
            content = write_text(message) if mode == "text" else write_guided(message, think=think)
        elif role == "tool":
            content = f"<tool_response>\n{content}\n</tool_response>"
            if made and made[-1]["role"] == "user" and made[-1]["content"].startswith("<tool_response>"):
                made[-1]["content"] += f"\n{content}"
                continue
            role = "user"
        made.append({"role": role, "content": content})
    if not tools:
        return made
    rules = _rules(tools, mode, think)
    if made and made[0]["role"] == "system":
        made[0]["content"] = f"{made[0]['content']}\n\n{rules}"
    else:
        made.insert(0, {"role": "system", "content": rules})
    return made


def _rules(tools: Sequence[Mapping[str, Any]], mode: Mode, think: bool) -> str:
    described = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in native_tools(tools))
    if mode == "text":
        return TEXT_RULES.format(tools=described)
    thought = '"thought": "<why>", ' if think else ""
    call = f'{{{thought}"act": {{"name": "<name of the tool>", "arguments": {{<its arguments>}}}}}}'
    return GUIDED_RULES.format(tools=described, call=call)


def guided_schema(tools: Sequence[Mapping[str, Any]], *, think: bool) -> dict[str, Any]:
    """The JSON schema that one guided turn must fit: a call of one of the tools, or an answer."""
    acts = [
        _object({"name": {"type": "string", "enum": [tool["name"]]}, "arguments": _strict(tool["inputSchema"])})
        for tool in tools
    ]
    acts.append(_object({"answer": {"type": "string"}}))
    thought: dict[str, Any] = {"thought": {"type": "string"}} if think else {}
    return _object({**thought, "act": {"anyOf": acts}})


def _object(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def _strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """``schema`` with every field required and none defaulted, as strict modes want it."""
    made = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in made:
        made["properties"] = {name: _strict(inner) for name, inner in made["properties"].items()}
        made["required"] = list(made["properties"])
    if isinstance(made.get("items"), Mapping):
        made["items"] = _strict(made["items"])
    return made


def read_guided(text: str) -> Message:
    """The assistant message that a guided turn means; a thought becomes ``<think>…</think>`` before the act.

    Text that does not fit the schema (the endpoint ignored it) is a malformed call, so that the policy reads why.
    """
    try:
        turn = load_object(text)
    except ValueError:
        return assistant("", [tool_call("call_0", "", text)])
    thought, act = turn.get("thought"), turn.get("act")
    content = f"<think>{thought}</think>" if isinstance(thought, str) and thought else ""
    if isinstance(act, dict) and isinstance(act.get("answer"), str):
        return assistant(content + act["answer"])
    if isinstance(act, dict) and isinstance(act.get("name"), str):
        arguments = act.get("arguments")
        given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return assistant(content, [tool_call("call_0", act["name"], given)])
    return assistant(content, [tool_call("call_0", "", text)])


def write_guided(message: Message, *, think: bool) -> str:
    """The JSON text that :func:`read_guided` reads as ``message``."""
    content = message["content"]
    turn: dict[str, Any] = {}
    if think and content.startswith("<think>") and "</think>" in content:
        thought, _, content = content.removeprefix("<think>").partition("</think>")
        turn["thought"] = thought
    calls = message.get("tool_calls", [])
    if not calls:
        return json.dumps({**turn, "act": {"answer": content}}, ensure_ascii=False)
    name, arguments = calls[0]["function"]["name"], calls[0]["function"]["arguments"]
    if not name:
        return arguments
    try:
        act = {"name": name, "arguments": load_object(arguments)}
    except ValueError:
        act = {"name": name, "arguments": {}}
    return json.dumps({**turn, "act": act}, ensure_ascii=False)
