"""What policies that ask an endpoint have in common, whichever API it speaks: where it is, what its key is, how it is
asked, and whose failure it is when no turn comes back."""

from __future__ import annotations

import abc
import dataclasses
import ipaddress
import json
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Self, get_args
from urllib.parse import urlsplit

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.messages import Message
from mcpgym_rl.failures import explain
from mcpgym_rl.policies.asking import Asking, Requests
from mcpgym_rl.policies.chat_format import Mode
from mcpgym_rl.policy import ContextFull, EpisodeContext, PolicyError, PolicyUnavailable, Turn

NO_KEY = "none"
"""What is sent as the key to an endpoint on this machine where none is given."""
HIDDEN = "//***@"
"""What stands in a URL for a user and a password."""
_USER = re.compile(r"//[^/\s]*@")
_TOO_LONG = re.compile(
    r"context[_ ](length|window|size|limit)|maximum context|prompt is too long|request_too_large", re.IGNORECASE
)
_REFUSALS = frozenset({401, 402, 403, 404, 408, 409, 429})
"""Answers that, like every 5xx, say nothing about the conversation: any other would get them too."""
_NO_MONEY = re.compile(r"credit balance is too low|insufficient_quota", re.IGNORECASE)
"""Words of a refusal that any other conversation would get too, whatever its status."""


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """How an endpoint is asked; what is None is not sent.

    ``mode``: ``native`` (the API's tool calls), ``guided`` (a JSON schema) or ``text`` (``<tool_call>`` blocks).
    ``think``: in ``guided`` mode, let the model write a thought before it acts. ``max_tokens``: of one turn.
    ``timeout``: seconds for one turn, tries and waits and all. ``retries``: how often a request is repeated after a
    network fault or a 408, 409, 429 or 5xx answer, waiting twice as long each time, or as long as the server says.
    ``rate_limit``: requests per minute, of all rollouts together, repeated ones included; ``timeout`` does not count
    the waiting for it.
    """

    mode: Mode = "native"
    think: bool = False
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
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

    @property
    def sampling(self) -> dict[str, float]:
        """The sampling settings that were given."""
        given = {"temperature": self.temperature, "top_p": self.top_p}
        return {name: value for name, value in given.items() if value is not None}


def without_password(text: str) -> str:
    """``text`` as it may be shown and stored: without what a URL in it has before its host."""
    return _USER.sub(HIDDEN, text)


class EndpointPolicy(abc.ABC):
    """Turns from an endpoint; one pool of connections for all rollouts.

    Args:
        model: its name there.
        base_url: where the API is found; None for the provider's own, where there is one.
        key: the API key.
        options: see :class:`EndpointOptions`.
    """

    kind: ClassVar[str]
    """What the policy's name begins with."""
    key_variable: ClassVar[str]
    """The environment variable that holds the key."""
    default_url: ClassVar[str | None] = None
    """The provider's own address, where ``@BASE_URL`` may be left out."""
    option_class: ClassVar[type[EndpointOptions]] = EndpointOptions

    def __init__(self, model: str, base_url: str | None, key: str, options: EndpointOptions) -> None:
        if base_url is None and self.default_url is None:
            raise ConfigurationError(f"{self.kind}:{model}: write {self.form()}")
        self.name = f"{self.kind}:{model}" if base_url is None else without_password(f"{self.kind}:{model}@{base_url}")
        self.model = model
        self.base_url: str = base_url or self.default_url or ""
        self.requests = Requests(options.rate_limit)
        self.endpoint_options = options
        self.key = key
        self._client: Any = None

    @classmethod
    def form(cls) -> str:
        """How such a policy is written, with an example."""
        example = f"{cls.kind}:my-model@http://127.0.0.1:8000{'' if cls.kind == 'anthropic' else '/v1'}"
        where = "@BASE_URL" if cls.default_url is None else "[@BASE_URL]"
        return f"{cls.kind}:MODEL{where}, for example {example}"

    @classmethod
    def make(cls, where: str, options: Mapping[str, Any]) -> Self:
        """The policy for ``MODEL@BASE_URL``, or for ``MODEL`` alone at the provider's own address.

        Raises:
            ConfigurationError: the address or an option will not do, or there is no API key.
        """
        known = {item.name for item in dataclasses.fields(cls.option_class)}
        for name in options:
            if name not in known:
                raise UnknownNameError(f"option of {cls.kind} policies", name, known)
        model, at, rest = where.partition("@http")
        base_url = f"http{rest}".rstrip("/") if at else None
        odd = not at and ("@" in where or "://" in where)
        if not model or odd or (base_url is None and cls.default_url is None) or not (not at or is_address(base_url)):
            shown = model.partition("@")[0][:80]  # without the address, which may hold a password
            raise ConfigurationError(f"{cls.kind}:{shown}…: write {cls.form()}")
        return cls(model, base_url, cls._key(base_url or cls.default_url or ""), cls.option_class(**options))

    @classmethod
    def _key(cls, base_url: str) -> str:
        if key := os.environ.get(cls.key_variable, "").strip():
            return key
        if not is_loopback(base_url):
            raise ConfigurationError(
                f"{without_password(base_url)} needs a key: set {cls.key_variable} (to anything, where none is checked)"
            )
        return NO_KEY

    @abc.abstractmethod
    def begin(self, context: EpisodeContext) -> EndpointSession:
        """A session for one rollout."""

    @abc.abstractmethod
    def _connect(self, trust_env: bool) -> Any:
        """The API's own client. With ``trust_env``, proxies that the environment names are used."""

    def client(self) -> Any:
        """The client, made when it is first needed: importing it takes a second."""
        if self._client is None:
            # a proxy has no business between here and this machine
            self._client = self._connect(trust_env=not is_loopback(self.base_url))
        return self._client

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def without_key(self, text: str) -> str:
        """``text`` of the endpoint's as it may be shown: some repeat the key that they refuse."""
        return text.replace(self.key, "***") if self.key != NO_KEY else text


def is_address(url: str | None) -> bool:
    """Whether this is the address of an API: a scheme, a host, and nothing after the path."""
    try:
        parts = urlsplit(url or "")
        _ = parts.port  # raises for one that is no number
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)


def is_loopback(base_url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class EndpointSession(abc.ABC):
    """An endpoint at work on one rollout. The endpoint keeps nothing: every turn sends the whole conversation."""

    answers: ClassVar[str]
    """What an answer of the endpoint is called: "chat completion"."""

    def __init__(self, policy: EndpointPolicy, context: EpisodeContext) -> None:
        self._policy = policy
        self._context = context
        self._turn = 0

    async def act(self, messages: Sequence[Message]) -> Turn:
        """The next turn."""
        self._turn += 1
        asking = Asking()
        try:
            return await self._take_turn(messages, asking)
        except PolicyError as error:
            error.usage = asking.usage
            raise

    @abc.abstractmethod
    async def _take_turn(self, messages: Sequence[Message], asking: Asking) -> Turn:
        """Ask for the next turn; what it takes is added to ``asking.usage``."""

    def fork(self) -> Self:
        """A session of its own from here on."""
        return copy(self)

    async def aclose(self) -> None:  # noqa: B027  # a session has it, and there is nothing to do
        """Nothing is held."""

    @asynccontextmanager
    async def _asked(self, sdk: Any, asking: Asking) -> AsyncIterator[None]:
        """Ask within the block, through a provider's ``sdk``, for as long as a turn may take.

        Raises:
            ContextFull: the conversation is too long for the model.
            PolicyUnavailable: the endpoint is not there, or would refuse any other conversation as well.
            PolicyError: it gave no answer to this one.
        """
        policy = self._policy
        try:
            async with asking.within(policy.endpoint_options.timeout):
                yield
        except sdk.APIStatusError as error:
            raise self._refused(error.status_code, error.body, getattr(error, "code", None)) from None
        except (sdk.APITimeoutError, TimeoutError):
            seconds = policy.endpoint_options.timeout
            raise PolicyUnavailable(f"{policy.name} did not answer within {seconds:g} s, tries and all") from None
        except sdk.APIConnectionError as error:
            cause = explain(error.__cause__ or error)
            raise PolicyUnavailable(f"{policy.name} cannot be reached: {cause}") from None
        except (sdk.APIError, ValueError) as error:
            raise self._no_answer(explain(error)) from None

    def _refused(self, status: int, body: Any, code: Any) -> PolicyError:
        policy = self._policy
        text = policy.without_key(said(body))
        inner = body.get("error", body) if isinstance(body, dict) else None  # one SDK gives its inside alone
        words = f"{code} {inner.get('type') if isinstance(inner, dict) else ''} {text}"
        if status in (400, 413) and _TOO_LONG.search(words):
            return ContextFull(text)
        hint = f" (is {policy.key_variable} right?)" if status in (401, 403) else ""
        everybody = status in _REFUSALS or status >= 500 or _NO_MONEY.search(words)
        kind = PolicyUnavailable if everybody else PolicyError
        return kind(f"{policy.name} answered {status}: {text}{hint}")

    def _no_answer(self, what: str) -> PolicyError:
        return PolicyError(f"{self._policy.name} answered what is no {self.answers}: {self._policy.without_key(what)}")


def body_of(response: Any) -> dict[str, Any]:
    """The JSON object that a response of an SDK's is, as it came: its own types would lose what they do not know.

    Raises:
        ValueError: it is none; the message is its text.
    """
    text = response.http_response.text
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise ValueError(said(text))
    return body


def said(body: Any) -> str:
    """What a server itself said, out of the usual shapes of an error body, or as it stands."""
    if isinstance(body, dict):
        inner = body.get("error") or body
        words = inner.get("message") if isinstance(inner, dict) else inner
        body = words if isinstance(words, str) and words else json.dumps(body, default=str)
    return " ".join(str(body or "nothing").split())[:500]
