"""``anthropic:MODEL``: a policy that asks the Anthropic Messages API, or an endpoint like it, for each turn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message, assistant, tool_call
from mcpgym_rl.parse import read_text
from mcpgym_rl.policies.anthropic_format import anthropic_messages, anthropic_tools
from mcpgym_rl.policies.asking import Asking, usage_of
from mcpgym_rl.policies.chat_format import guided_schema, plain_messages, read_guided
from mcpgym_rl.policies.endpoint import EndpointPolicy, body_of, said
from mcpgym_rl.policies.kept_turns import KeepingSession, KeptTurns
from mcpgym_rl.policy import EpisodeContext, PolicyError, Turn

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

DEFAULT_MAX_TOKENS = 8_192
"""Of one turn, thoughts included, where nothing is said: the API wants a number."""
MAX_PAUSES = 8
"""How often the API may pause one turn before that counts as a failure."""
_CUT_OFF = ("max_tokens", "model_context_window_exceeded")


class MessagesPolicy(EndpointPolicy):
    """Turns from ``/v1/messages``.

    ``think`` of the options lets the model think before it acts, in ``native`` and ``text`` mode too (adaptive
    thinking). No seed is sent: the API has none.
    """

    kind = "anthropic"
    key_variable = "ANTHROPIC_API_KEY"
    default_url = "https://api.anthropic.com"

    @classmethod
    def make(cls, where: str, options: Mapping[str, Any]) -> Self:
        """As :meth:`EndpointPolicy.make`; also refused where the package ``anthropic`` is not installed."""
        if find_spec("anthropic") is None:
            raise ConfigurationError("anthropic:MODEL needs a package more: pip install 'mcpgym[anthropic]'")
        return super().make(where, options)

    def begin(self, context: EpisodeContext) -> MessagesSession:
        """A session for one rollout."""
        return MessagesSession(self, context)

    def _connect(self, trust_env: bool) -> AsyncAnthropic:
        from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient

        return AsyncAnthropic(
            api_key=self.key,
            base_url=self.base_url.removesuffix("/v1"),  # which the client appends
            timeout=self.endpoint_options.timeout,
            max_retries=self.endpoint_options.retries,
            http_client=DefaultAsyncHttpxClient(trust_env=trust_env, event_hooks=self.requests.hooks()),
        )


class MessagesSession(KeepingSession):
    """A conversation with the endpoint over one rollout. The model's turns go back to it as it wrote them."""

    answers = "message"

    async def _take_turn(self, messages: Sequence[Message], asking: Asking) -> Turn:
        import anthropic

        request = self._request(messages)
        blocks: list[dict[str, Any]] = []
        create = self._policy.client().messages.with_raw_response.create
        async with self._asked(anthropic, asking):
            for _ in range(1 + MAX_PAUSES):
                answer = body_of(await create(**request))
                asking.usage += usage_of(answer.get("usage"))
                blocks += self._blocks(answer)
                if answer["stop_reason"] != "pause_turn":
                    break
                before = [turn for turn in request["messages"] if turn["content"] is not blocks]
                request["messages"] = [*before, {"role": "assistant", "content": blocks}] if blocks else before
            else:
                raise PolicyError(f"{self._policy.name} paused one turn more than {MAX_PAUSES} times")
        if answer["stop_reason"] == "refusal":
            raise PolicyError(f"{self._policy.name} refused to answer{_why(answer)}")
        message = self._message(blocks, len(messages))
        finish = answer["stop_reason"] in _CUT_OFF
        return Turn(message, finish="length" if finish else "stop", usage=asking.usage)

    def _request(self, messages: Sequence[Message]) -> dict[str, Any]:
        options, tools = self._options, self._context.tools
        request: dict[str, Any] = {
            "model": self._policy.model,
            "max_tokens": options.max_tokens or DEFAULT_MAX_TOKENS,
        }
        if options.mode == "native":
            system, request["messages"] = anthropic_messages(messages, self._kept)
            if tools:
                request["tools"] = anthropic_tools(tools)
        else:
            plain: Any = plain_messages(messages, tools, options.mode, think=options.think)
            system, request["messages"] = anthropic_messages(plain, KeptTurns())
            if options.mode == "guided" and tools:
                from anthropic import transform_schema

                schema = transform_schema(guided_schema(tools, think=options.think))
                request["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        if system:
            request["system"] = system
        if options.think and options.mode != "guided":
            request["thinking"] = {"type": "adaptive", "display": "summarized"}
        if options.sampling:
            request["extra_body"] = options.sampling  # newer models refuse them, so the client does not know them
        return request

    def _blocks(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The content of a message, trusting nothing about its shape."""
        content = answer.get("content")
        if not isinstance(content, list) or not isinstance(answer.get("stop_reason"), str):
            raise self._no_answer(said(answer))
        return [block for block in content if isinstance(block, dict) and isinstance(block.get("type"), str)]

    def _message(self, blocks: Sequence[Mapping[str, Any]], place: int) -> Message:
        options, tools = self._options, self._context.tools
        text = "".join(_texts(blocks, "text"))
        calls = [block for block in blocks if block["type"] == "tool_use"]
        if options.mode == "guided" and tools:
            message = read_guided(text)
        elif not calls and tools and (options.mode == "text" or "<tool_call>" in text):
            message = read_text(text)  # also in native mode: where a server could not parse a call, it leaves it there
        else:
            message = assistant(text, [_call(number, block) for number, block in enumerate(calls)])
        if thoughts := "\n\n".join(filter(None, _texts(blocks, "thinking"))):
            message["reasoning_content"] = thoughts
        if len(calls) == len(message.get("tool_calls", ())):
            self._kept.keep(place, message, blocks)
        return message


def _texts(blocks: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
    """The texts of the blocks of a kind, which is also the name of the field that holds them."""
    found = [block.get(kind) for block in blocks if block["type"] == kind]
    return [text for text in found if isinstance(text, str)]


def _call(number: int, block: Mapping[str, Any]) -> Any:
    given = block.get("id")
    made = tool_call(given if isinstance(given, str) and given else f"call_{number}", "", "")
    arguments = block.get("input")
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    made["function"] = {"name": block.get("name"), "arguments": arguments}  # type: ignore[typeddict-item]  # parse() checks
    return made


def _why(answer: Mapping[str, Any]) -> str:
    details = answer.get("stop_details")
    found = [details.get(name) for name in ("category", "explanation")] if isinstance(details, dict) else []
    words = ": ".join(word for word in found if isinstance(word, str) and word)
    return f": {words[:500]}" if words else ""
