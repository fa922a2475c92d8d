"""``openai:MODEL@BASE_URL``: a policy that asks an OpenAI-compatible endpoint for each turn."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import os
import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.messages import Message, assistant, tool_call
from mcpgym.tasks import derive_seed
from mcpgym_rl.failures import explain
from mcpgym_rl.parse import read_text
from mcpgym_rl.policies.asking import Asking, Requests, usage_of
from mcpgym_rl.policies.chat_format import (
    Mode,
    guided_schema,
    native_messages,
    native_tools,
    plain_messages,
    read_guided,
)
from mcpgym_rl.policy import ContextFull, EpisodeContext, PolicyError, PolicyUnavailable, Turn, Usage

if TYPE_CHECKING:
    from openai import AsyncOpenAI

KEY_VARIABLE = "OPENAI_API_KEY"
_NO_KEY = "none"
HIDDEN = "//***@"
"""What stands in a URL for a user and a password."""
_USER = re.compile(r"//[^/\s]*@")
_TOO_LONG = re.compile(r"context[_ ](length|window|size)|maximum context|prompt is too long", re.IGNORECASE)
_REFUSALS = frozenset({401, 402, 403, 404, 408, 409, 429})
"""Answers that, like every 5xx, say nothing about the conversation: any other would get them too."""
_RENAMED = frozenset({"api.openai.com"})
"""Hosts whose limit on a turn is called ``max_completion_tokens``; everybody else understands ``max_tokens``."""


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """How an endpoint is asked; what is None is not sent.

    ``mode``: ``native`` (the API's tool calls), ``guided`` (a JSON schema) or ``text`` (``<tool_call>`` blocks).
    ``think``: in ``guided`` mode, let the model write a thought before it acts. ``max_tokens``: of one turn.
    ``send_seed``: send a seed of each turn's own, derived from the rollout's. ``timeout``: seconds for one turn, tries
    and waits and all. ``retries``: how often a request is repeated after a network fault or a 408, 409, 429 or 5xx
    answer, waiting twice as long each time, or as long as the server says. ``rate_limit``: requests per minute, of all
    rollouts together, repeated ones included; ``timeout`` does not count the waiting for it.
    """

    mode: Mode = "native"
    think: bool = False
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    send_seed: bool = True
    timeout: float = 600.0
    retries: int = 6
    rate_limit: float | None = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ConfigurationError(f"there is no tool mode {self.mode!r}; there is: {', '.join(get_args(Mode))}")
        self._within("temperature", 0, 10)
        self._within("top_p", 0, 1)
        self._within("max_tokens", 1, 10_000_000)
        self._within("retries", 0, 100)
        self._within("timeout", 0.001, 86_400)
        self._within("rate_limit", 0.01, 1_000_000)

    def _within(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        if value is not None and not low <= value <= high:
            raise ConfigurationError(f"{name} {value} must lie between {low:g} and {high:g}")


def make_chat_policy(where: str, options: Mapping[str, Any]) -> ChatPolicy:
    """The policy for ``MODEL@BASE_URL``.

    Raises:
        ConfigurationError: the address or an option will not do, or there is no API key.
    """
    known = {item.name for item in dataclasses.fields(ChatOptions)}
    for name in options:
        if name not in known:
            raise UnknownNameError("option of openai policies", name, known)
    model, at, base_url = where.partition("@http")
    base_url = f"http{base_url}".rstrip("/") if at else ""
    if not model or not at or not _is_address(base_url):
        raise ConfigurationError(
            f"openai:{model[:80]}…: write openai:MODEL@BASE_URL, for example openai:my-model@http://127.0.0.1:8000/v1"
        )  # without the address, which may hold a password
    return ChatPolicy(model, base_url, _key(base_url), ChatOptions(**options))


def without_password(text: str) -> str:
    """``text`` as it may be shown and stored: without what a URL in it has before its host."""
    return _USER.sub(HIDDEN, text)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises for one that is no number
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)


def _key(base_url: str) -> str:
    if key := os.environ.get(KEY_VARIABLE, "").strip():
        return key
    if not _is_loopback(base_url):
        raise ConfigurationError(
            f"{without_password(base_url)} needs a key: set {KEY_VARIABLE} (to anything, where none is checked)"
        )
    return _NO_KEY


def _is_loopback(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class ChatPolicy:
    """Turns from an OpenAI-compatible endpoint; one pool of connections for all rollouts.

    Args:
        model: its name there.
        base_url: where ``/chat/completions`` is found.
        key: the API key.
        options: see :class:`ChatOptions`.
    """

    def __init__(self, model: str, base_url: str, key: str, options: ChatOptions) -> None:
        self.name = without_password(f"openai:{model}@{base_url}")
        self.model = model
        self.base_url = base_url
        self.options = options
        self.requests = Requests(options.rate_limit)
        self._key = key
        self._client: AsyncOpenAI | None = None

    def begin(self, context: EpisodeContext) -> ChatSession:
        """A session for one rollout."""
        return ChatSession(self, context)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def without_key(self, text: str) -> str:
        """``text`` of the endpoint's as it may be shown: some repeat the key that they refuse."""
        return text.replace(self._key, "***") if self._key != _NO_KEY else text

    def client(self) -> AsyncOpenAI:
        """The client, made when it is first needed: importing it takes a second."""
        if self._client is None:
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient

            beyond = not _is_loopback(self.base_url)  # a proxy has no business between here and this machine
            self._client = AsyncOpenAI(
                api_key=self._key,
                base_url=self.base_url,
                timeout=self.options.timeout,
                max_retries=self.options.retries,
                http_client=DefaultAsyncHttpxClient(trust_env=beyond, event_hooks=self.requests.hooks()),
            )
        return self._client


class ChatSession:
    """An endpoint at work on one rollout. The endpoint keeps nothing: every turn sends the whole conversation."""

    def __init__(self, policy: ChatPolicy, context: EpisodeContext) -> None:
        self._policy = policy
        self._context = context
        self._turn = 0

    async def act(self, messages: Sequence[Message]) -> Turn:
        """The next turn."""
        self._turn += 1
        asking = Asking()
        try:
            return await self._ask(self._request(messages), asking)
        except PolicyError as error:
            error.usage = asking.usage
            raise

    async def _ask(self, request: Mapping[str, Any], asking: Asking) -> Turn:
        import openai

        try:
            async with asking.within(self._policy.options.timeout):
                answer = await self._policy.client().chat.completions.create(**request)
        except openai.APIStatusError as error:
            status, text = error.status_code, self._policy.without_key(_said(error.body))
            if status in (400, 413) and _TOO_LONG.search(f"{error.code} {text}"):
                raise ContextFull(text) from None
            hint = f" (is {KEY_VARIABLE} right?)" if status in (401, 403) else ""
            kind = PolicyUnavailable if status in _REFUSALS or status >= 500 else PolicyError
            raise kind(f"{self._policy.name} answered {status}: {text}{hint}") from None
        except (openai.APITimeoutError, TimeoutError):
            seconds = self._policy.options.timeout
            text = f"{self._policy.name} did not answer within {seconds:g} s, tries and all"
            raise PolicyUnavailable(text) from None
        except openai.APIConnectionError as error:
            cause = explain(error.__cause__ or error)
            raise PolicyUnavailable(f"{self._policy.name} cannot be reached: {cause}") from None
        except (openai.OpenAIError, ValueError) as error:
            raise self._no_completion(explain(error)) from None
        asking.usage += usage_of(getattr(answer, "usage", None))
        return self._read(answer, asking.usage)

    def fork(self) -> ChatSession:
        """A session of its own from here on."""
        return copy(self)

    async def aclose(self) -> None:
        """Nothing is held."""

    def _request(self, messages: Sequence[Message]) -> dict[str, Any]:
        options, tools = self._policy.options, self._context.tools
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
        sampling = {"temperature": options.temperature, "top_p": options.top_p}
        request |= {name: value for name, value in sampling.items() if value is not None}
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
            raise self._no_completion(_said(body))
        choice = choices[0]
        finish = getattr(choice, "finish_reason", None)
        if finish == "content_filter":
            raise PolicyError(f"{self._policy.name}: the endpoint's content filter stopped the answer")
        return Turn(
            self._message(choice.message),
            finish="length" if finish == "length" else "stop",
            usage=usage,
        )

    def _no_completion(self, what: str) -> PolicyError:
        return PolicyError(f"{self._policy.name} answered what is no chat completion: {self._policy.without_key(what)}")

    def _message(self, given: Any) -> Message:
        content = getattr(given, "content", None)
        text = _text(content) or _text(getattr(given, "refusal", None))
        calls = getattr(given, "tool_calls", None)
        calls = calls if isinstance(calls, list) else []
        if self._policy.options.mode == "guided" and self._context.tools:
            message = read_guided(text)
        elif not calls and self._context.tools and (self._policy.options.mode == "text" or "<tool_call>" in text):
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


def _said(body: Any) -> str:
    """What the server itself said, out of the usual shapes of an error body, or as it stands."""
    if isinstance(body, dict):
        inner = body.get("error") or body
        said = inner.get("message") if isinstance(inner, dict) else inner
        body = said if isinstance(said, str) and said else json.dumps(body, default=str)
    return " ".join(str(body or "nothing").split())[:500]
