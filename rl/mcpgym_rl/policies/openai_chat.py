"""``openai:MODEL@BASE_URL``: a policy that asks an OpenAI-compatible endpoint for each turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel

from mcpgym.messages import Message, assistant, tool_call
from mcpgym.tasks import derive_seed
from mcpgym_rl.parse import read_text
from mcpgym_rl.policies.asking import Asking, usage_of
from mcpgym_rl.policies.chat_format import (
    guided_schema,
    native_messages,
    native_tools,
    plain_messages,
    read_guided,
)
from mcpgym_rl.policies.endpoint import EndpointOptions, EndpointPolicy, EndpointSession, said
from mcpgym_rl.policy import EpisodeContext, PolicyError, Turn, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_RENAMED = frozenset({"api.openai.com"})
"""Hosts whose limit on a turn is called ``max_completion_tokens``; everybody else understands ``max_tokens``."""


@dataclass(frozen=True, slots=True)
class ChatOptions(EndpointOptions):
    """``send_seed``: send a seed of each turn's own, derived from the rollout's."""

    send_seed: bool = True


class ChatPolicy(EndpointPolicy):
    """Turns from ``/chat/completions``."""

    kind = "openai"
    key_variable = "OPENAI_API_KEY"
    option_class = ChatOptions

    @property
    def options(self) -> ChatOptions:
        """How the endpoint is asked."""
        assert isinstance(self.endpoint_options, ChatOptions)
        return self.endpoint_options

    def begin(self, context: EpisodeContext) -> ChatSession:
        """A session for one rollout."""
        return ChatSession(self, context)

    def _connect(self, trust_env: bool) -> AsyncOpenAI:
        return connect_openai(self, trust_env)


def connect_openai(policy: EndpointPolicy, trust_env: bool) -> AsyncOpenAI:
    """A client of OpenAI's for the policy's endpoint."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    return AsyncOpenAI(
        api_key=policy.key,
        base_url=policy.base_url,
        timeout=policy.endpoint_options.timeout,
        max_retries=policy.endpoint_options.retries,
        http_client=DefaultAsyncHttpxClient(trust_env=trust_env, event_hooks=policy.requests.hooks()),
    )


class ChatSession(EndpointSession):
    """A chat with the endpoint over one rollout."""

    answers = "chat completion"

    def __init__(self, policy: ChatPolicy, context: EpisodeContext) -> None:
        super().__init__(policy, context)
        self._options = policy.options

    async def _take_turn(self, messages: Sequence[Message], asking: Asking) -> Turn:
        import openai

        request, create = self._request(messages), self._policy.client().chat.completions.create
        async with self._asked(openai, asking):
            answer = await create(**request)
        asking.usage += usage_of(getattr(answer, "usage", None))
        return self._read(answer, asking.usage)

    def _request(self, messages: Sequence[Message]) -> dict[str, Any]:
        options, tools = self._options, self._context.tools
        request: dict[str, Any] = {"model": self._policy.model}
        if options.mode == "native":
            request["messages"] = native_messages(messages)
            if tools:
                request["tools"] = native_tools(tools)
        else:
            request["messages"] = plain_messages(messages, tools, options.mode, think=options.think)
            if options.mode == "guided" and tools:
                schema = guided_schema(tools, think=options.think)
                shape = {"name": "turn", "strict": True, "schema": schema}
                request["response_format"] = {"type": "json_schema", "json_schema": shape}
        request |= options.sampling
        if options.max_tokens is not None:
            modern = urlsplit(self._policy.base_url).hostname in _RENAMED
            request["max_completion_tokens" if modern else "max_tokens"] = options.max_tokens
        if options.send_seed:
            request["seed"] = derive_seed(self._context.seed, self._turn) >> 33  # 31 bits: what every server takes
        return request

    def _read(self, answer: Any, usage: Usage) -> Turn:
        """The turn in a chat completion, trusting nothing about its shape."""
        choices = getattr(answer, "choices", None)
        if not isinstance(choices, list) or not choices or getattr(choices[0], "message", None) is None:
            body = answer.model_dump(exclude_none=True) if isinstance(answer, BaseModel) else answer
            raise self._no_answer(said(body))
        choice = choices[0]
        finish = getattr(choice, "finish_reason", None)
        if finish == "content_filter":
            raise PolicyError(f"{self._policy.name}: the endpoint's content filter stopped the answer")
        return Turn(
            self._message(choice.message),
            finish="length" if finish == "length" else "stop",
            usage=usage,
        )

    def _message(self, given: Any) -> Message:
        content = getattr(given, "content", None)
        text = _text(content) or _text(getattr(given, "refusal", None))
        calls = getattr(given, "tool_calls", None)
        calls = calls if isinstance(calls, list) else []
        if self._options.mode == "guided" and self._context.tools:
            message = read_guided(text)
        elif not calls and self._context.tools and (self._options.mode == "text" or "<tool_call>" in text):
            message = read_text(text)  # also in native mode: where a server could not parse a call, it leaves it there
        else:
            message = assistant(text, [_native_call(place, call) for place, call in enumerate(calls)])
        for name in ("reasoning_content", "reasoning"):
            if isinstance(reasoning := getattr(given, name, None), str) and reasoning:
                message["reasoning_content"] = reasoning
                break
        return message


def _text(content: Any) -> str:
    """Content as text; some endpoints give it in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _native_call(place: int, call: Any) -> Any:
    function = getattr(call, "function", None)
    name, arguments = getattr(function, "name", None), getattr(function, "arguments", None)
    given = getattr(call, "id", None)
    made = tool_call(given if isinstance(given, str) and given else f"call_{place}", "", "")
    made["function"] = {"name": name, "arguments": arguments}  # type: ignore[typeddict-item]  # parse() checks them
    return made
