"""Who answers: the built-in reader, an endpoint, or what somebody has given."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.sessions.asking import Refused

if TYPE_CHECKING:
    from openai import AsyncOpenAI

SubModel: TypeAlias = Callable[[str], Awaitable[str]]
"""Takes a prompt, gives the answer. It may be asked several at once. :class:`Refused` is for the code that asked to
read; any other exception ends the episode without a score."""

KEY_VARIABLE = "OPENAI_API_KEY"
MOST_TOKENS = 4_096
"""Tokens that an endpoint may write for one answer."""


class Endpoint:
    """Asks an OpenAI-compatible endpoint, ``openai:MODEL@BASE_URL``, at temperature 0.

    Args:
        spec: the whole of it.
        seconds: how long each try may take.

    Raises:
        ConfigurationError: the endpoint is on another machine, and there is no key for it.
    """

    def __init__(self, spec: str, seconds: float) -> None:
        self._model, _, self._url = spec.removeprefix("openai:").partition("@")
        host = urlsplit(self._url).hostname or ""
        self._local = host in ("localhost", "::1") or host.startswith("127.")
        self._key = os.environ.get(KEY_VARIABLE, "").strip() or ("none" if self._local else "")
        if not self._key:
            raise ConfigurationError(f"sub_model={spec.partition('@')[0]}@…: set {KEY_VARIABLE}")
        self._seconds = seconds
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = WeakKeyDictionary()

    async def __call__(self, prompt: str) -> str:
        """The answer.

        Raises:
            Refused: the endpoint takes no such prompt.
            RuntimeError: it does not answer.
        """
        from openai import BadRequestError, OpenAIError

        try:
            answer = await self._client().chat.completions.create(
                model=self._model,
                messages=[{"role": "user", "content": prompt}],
                temperature=0,
                max_tokens=MOST_TOKENS,
            )
        except BadRequestError:  # too long for it, say: that is the prompt's doing
            raise Refused("the model does not take this prompt") from None
        except OpenAIError as error:
            raise RuntimeError(f"it did not answer: {type(error).__name__}: {error}") from error
        return answer.choices[0].message.content or "" if answer.choices else ""

    def _client(self) -> AsyncOpenAI:
        """A client for each event loop: it belongs to the one that it was first used in."""
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            http = DefaultAsyncHttpxClient(trust_env=not self._local)
            self._clients[loop] = AsyncOpenAI(
                api_key=self._key, base_url=self._url, timeout=self._seconds, max_retries=2, http_client=http
            )
        return self._clients[loop]

    async def close(self) -> None:
        """Close the client of the running event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()
