"""``openai-responses:MODEL``: a policy that asks the OpenAI Responses API, or an endpoint like it, for each turn.

The endpoint stores nothing (``store`` is false): each turn sends the whole conversation, the model's reasoning in the
encrypted form in which it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mcpgym.messages import Message, assistant, tool_call
from mcpgym_rl.parse import read_text
from mcpgym_rl.policies.asking import Asking, usage_of
from mcpgym_rl.policies.chat_format import call_ids, guided_schema, plain_messages, plain_name, read_guided, sendable
from mcpgym_rl.policies.endpoint import EndpointPolicy, body_of, said
from mcpgym_rl.policies.kept_turns import KeepingSession, KeptTurns, Parts
from mcpgym_rl.policies.openai_chat import connect_openai
from mcpgym_rl.policy import EpisodeContext, PolicyError, PolicyUnavailable, Turn

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Item = dict[str, Any]

_EVERYBODYS = ("server_error", "rate_limit_exceeded")
"""Codes of failures that say nothing about the conversation."""
_NOT_ENCRYPTED = "encrypted content is not supported"
"""Words with which models that do not reason refuse to give their reasoning."""


class ResponsesPolicy(EndpointPolicy):
    """Turns from ``/responses``.

    ``think`` of the options asks for a summary of the reasoning, in ``native`` and ``text`` mode; a model that reasons
    does so anyway. No seed is sent: the API has none.
    """

    kind = "openai-responses"
    key_variable = "OPENAI_API_KEY"
    default_url = "https://api.openai.com/v1"

    reasons = True
    """Whether the model gives its reasoning in an encrypted form, as far as is known."""

    def begin(self, context: EpisodeContext) -> ResponsesSession:
        """A session for one rollout."""
        return ResponsesSession(self, context)

    def _connect(self, trust_env: bool) -> AsyncOpenAI:
        return connect_openai(self, trust_env)


class ResponsesSession(KeepingSession):
    """A conversation with the endpoint over one rollout. The model's turns go back to it as it wrote them."""

    answers = "response"

    def __init__(self, policy: ResponsesPolicy, context: EpisodeContext) -> None:
        super().__init__(policy, context)
        self._responses = policy

    async def _take_turn(self, messages: Sequence[Message], asking: Asking) -> Turn:
        import openai

        request, create = self._request(messages), self._policy.client().responses.with_raw_response.create
        async with self._asked(openai, asking):
            answer = await self._answer(create, request, openai.BadRequestError)
            asking.usage += usage_of(answer.get("usage"))
        items = self._items(answer)
        finish = self._finish(answer)
        return Turn(self._message(items, len(messages)), finish=finish, usage=asking.usage)

    async def _answer(self, create: Any, request: dict[str, Any], refusal: type[Exception]) -> dict[str, Any]:
        if self._responses.reasons:
            try:
                return body_of(await create(**request, include=["reasoning.encrypted_content"]))
            except refusal as error:
                if _NOT_ENCRYPTED not in said(getattr(error, "body", None)).lower():
                    raise
            self._responses.reasons = False
        return body_of(await create(**request))

    def _request(self, messages: Sequence[Message]) -> dict[str, Any]:
        options, tools = self._options, self._context.tools
        request: dict[str, Any] = {"model": self._policy.model, "store": False}
        if options.mode == "native":
            instructions, request["input"] = response_items(messages, self._kept)
            if tools:
                request["tools"] = response_tools(tools)
        else:
            plain: Any = plain_messages(messages, tools, options.mode, think=options.think)
            instructions, request["input"] = response_items(plain, KeptTurns())
            if options.mode == "guided" and tools:
                schema = guided_schema(tools, think=options.think)
                shape = {"type": "json_schema", "name": "turn", "strict": True, "schema": schema}
                request["text"] = {"format": shape}
        if instructions:
            request["instructions"] = instructions
        if options.think and options.mode != "guided":
            request["reasoning"] = {"summary": "auto"}
        if options.max_tokens is not None:
            request["max_output_tokens"] = options.max_tokens
        return request | options.sampling

    def _items(self, answer: Mapping[str, Any]) -> list[Item]:
        """The output of a response, trusting nothing about its shape."""
        output = answer.get("output")
        if isinstance(failure := answer.get("error"), dict):
            kind = PolicyUnavailable if failure.get("code") in _EVERYBODYS else PolicyError
            raise kind(f"{self._policy.name} failed: {self._policy.without_key(said(failure))}")
        if not isinstance(output, list):
            raise self._no_answer(said(answer))
        return [item for item in output if isinstance(item, dict) and isinstance(item.get("type"), str)]

    def _finish(self, answer: Mapping[str, Any]) -> Any:
        """Whether the response is whole: ``stop``, or ``length`` where a limit cut it off."""
        status = answer.get("status", "completed")
        if status == "completed":
            return "stop"
        details = answer.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        if status == "incomplete" and reason == "max_output_tokens":
            return "length"
        if reason == "content_filter":
            raise PolicyError(f"{self._policy.name}: the endpoint's content filter stopped the answer")
        raise PolicyError(f"{self._policy.name}: the response is {str(status)[:40]}, not completed ({reason!s:.80})")

    def _message(self, items: Sequence[Item], place: int) -> Message:
        options, tools = self._options, self._context.tools
        said_parts = [part for item in items if item["type"] == "message" for part in _parts(item, "content")]
        text = "".join(_text(part, "text") or _text(part, "refusal") for part in said_parts)
        calls = [item for item in items if item["type"] == "function_call"]
        if options.mode == "guided" and tools:
            message = read_guided(text)
        elif not calls and tools and (options.mode == "text" or "<tool_call>" in text):
            message = read_text(text)  # also in native mode: where a server could not parse a call, it leaves it there
        else:
            message = assistant(text, [_call(number, item) for number, item in enumerate(calls)])
        thoughts = [item for item in items if item["type"] == "reasoning"]
        parts = [part for item in thoughts for part in _parts(item, "content") or _parts(item, "summary")]
        if reasoning := "\n\n".join(filter(None, (_text(part, "text") for part in parts))):
            message["reasoning_content"] = reasoning
        if len(calls) == len(message.get("tool_calls", ())):
            self._kept.keep(place, message, items)
        return message


def response_tools(tools: Sequence[Mapping[str, Any]]) -> list[Item]:
    """The tools in the API's own fields. They are not strict: that would want every field required."""
    return [
        {
            "type": "function",
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["inputSchema"],
            "strict": False,
        }
        for tool in tools
    ]


def response_items(messages: Sequence[Message], kept: KeptTurns) -> tuple[str, list[Item]]:
    """The instructions and the items of a transcript.

    Args:
        messages: the transcript.
        kept: the model's own turns, as it wrote them.
    """
    ids = call_ids(messages, lambda name: len(name) <= 64)
    instructions: list[str] = []
    made: list[Item] = []
    waiting: list[str] = []
    for place, (message, names) in enumerate(zip(messages, ids, strict=True)):
        role, text = message["role"], message["content"]
        if role == "system" and not made:
            instructions.append(text)
        elif role == "assistant":
            made += _turn(message, kept.of(place, message), names)
            waiting = list(names)
        elif role == "tool":
            call_id = waiting.pop(0) if waiting else message.get("tool_call_id", "")
            made.append({"type": "function_call_output", "call_id": call_id, "output": text})
        else:
            made.append({"role": role, "content": text})
    if not made:  # the API wants an item
        return "", [{"role": "system", "content": "\n\n".join(instructions)}]
    return "\n\n".join(instructions), made


def _turn(message: Message, parts: Parts | None, names: Sequence[str]) -> list[Item]:
    calls = []
    for call, name in zip(message.get("tool_calls", ()), names, strict=True):
        tool, arguments = sendable(call)
        tool = plain_name(tool, 64)
        calls.append({"type": "function_call", "call_id": name, "name": tool, "arguments": arguments})
    if parts is None:
        said_before: list[Item] = [{"role": "assistant", "content": message["content"]}] if message["content"] else []
        return said_before + calls
    waiting = iter(calls)
    made = [{**part, **next(waiting)} if part["type"] == "function_call" else dict(part) for part in parts]
    # of reasoning that is neither encrypted nor told there is only an id, of something that was not stored
    made = [
        item for item in made if item["type"] != "reasoning" or item.get("encrypted_content") or item.get("content")
    ]
    while made and made[-1]["type"] == "reasoning":  # which nothing came of
        made.pop()
    return made


def _parts(item: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    parts = item.get(name)
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _text(part: Mapping[str, Any], name: str) -> str:
    text = part.get(name)
    return text if isinstance(text, str) else ""


def _call(number: int, item: Mapping[str, Any]) -> Any:
    given = item.get("call_id")
    made = tool_call(given if isinstance(given, str) and given else f"call_{number}", "", "")
    made["function"] = {"name": item.get("name"), "arguments": item.get("arguments")}  # type: ignore[typeddict-item]  # parse() checks
    return made
