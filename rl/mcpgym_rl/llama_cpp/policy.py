"""``llama:smollm2``, ``llama:PATH.gguf``: a model of llama.cpp's on this machine as a policy.

Its turns come from its server's chat completions, as those of any endpoint do; nothing leaves the machine. Calls are
``guided`` by a JSON schema unless the model's own template knows tools: then they are ``native``.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym.messages import Message
from mcpgym_rl.llama_cpp.files import digest, find_gguf
from mcpgym_rl.llama_cpp.process import LlamaServer, Size, require_llama_cpp, usable_threads
from mcpgym_rl.policies.chat_format import Mode
from mcpgym_rl.policies.openai_chat import ChatOptions, ChatPolicy, ChatSession
from mcpgym_rl.policy import EpisodeContext, PolicySession, PolicyUnavailable, Turn

MAX_TOKENS = 512
"""Of a turn, where nothing is said: a small model may go on for ever."""
RETRIES = 1
"""A server on this machine that does not answer has ended."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that is there, and how it is asked."""

    server: LlamaServer
    chat: ChatPolicy


class LlamaPolicy:
    """A GGUF file as a policy. Its server starts with the first rollout.

    Args:
        file: the file.
        name: how traces name it.
        mode: the tool mode; None for what the model can do.
        size: what the server takes on.
        **options: those of :class:`~mcpgym_rl.policies.openai_chat.ChatOptions`.
    """

    def __init__(
        self, file: Path, name: str, *, mode: Mode | None = None, size: Size | None = None, **options: Any
    ) -> None:
        self.file, self.name, self.mode = file, name, mode
        self.options = ChatOptions(
            **{"max_tokens": MAX_TOKENS, "retries": RETRIES, "mode": mode or "guided", **options}
        )
        self._size = size or Size(threads=usable_threads())
        self._server: LlamaServer | None = None
        self._running: Running | None = None
        self._starting = asyncio.Lock()

    @cached_property
    def hash(self) -> str:
        """The file's SHA-256."""
        return digest(self.file)

    def begin(self, context: EpisodeContext) -> PolicySession:
        """A session for one rollout."""
        if self._server is None:
            self._server = LlamaServer(self.file, self._size, self.name)
        return LlamaSession(self, context)

    async def running(self) -> Running:
        """The server, once it is there.

        Raises:
            PolicyUnavailable: it cannot be started, or has ended; the message says why.
        """
        async with self._starting:
            if self._running is None:
                self._running = await self._start()
            return self._running

    async def _start(self) -> Running:
        server = self._server
        if server is None:
            raise PolicyUnavailable(f"{self.name} is closed")
        address = await asyncio.to_thread(server.address)
        mode = self.mode or ("native" if await self._knows_tools(address, server.key) else "guided")
        options = dataclasses.replace(self.options, mode=mode)
        chat = ChatPolicy(self.file.stem, f"{address}/v1", server.key, options)
        chat.name = self.name
        return Running(server, chat)

    async def _knows_tools(self, address: str, key: str) -> bool:
        """Whether the model's template shows tools and calls, as llama.cpp found when it tried."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(self.options.timeout)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers={"Authorization": f"Bearer {key}"}) as client,
                client.get(f"{address}/props", raise_for_status=True) as answer,
            ):
                found = (await answer.json()).get("chat_template_caps", {})
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise PolicyUnavailable(f"{self.name}: its server does not say what it can do: {error}") from None
        return bool(found.get("supports_tools") and found.get("supports_tool_calls"))

    async def aclose(self) -> None:
        """End the server."""
        running, self._running = self._running, None
        server, self._server = self._server, None
        if running is not None:
            await running.chat.aclose()
        if server is not None:
            await asyncio.to_thread(server.end)


class LlamaSession:
    """The model at work on one rollout."""

    def __init__(self, policy: LlamaPolicy, context: EpisodeContext) -> None:
        self._policy, self._context = policy, context
        self._chat: ChatSession | None = None

    async def act(self, messages: Sequence[Message]) -> Turn:
        """The next turn."""
        running = await self._policy.running()
        if self._chat is None:
            self._chat = running.chat.begin(self._context)
        try:
            return await self._chat.act(messages)
        except PolicyUnavailable as error:
            if (ended := running.server.ended()) is None:
                raise
            raise PolicyUnavailable(ended) from error

    def fork(self) -> LlamaSession:
        """A session of its own from here on."""
        other = copy(self)
        other._chat = None if self._chat is None else self._chat.fork()
        return other

    async def aclose(self) -> None:
        """The server keeps nothing that belongs to one rollout."""


def make_llama_policy(where: str, options: Mapping[str, Any]) -> LlamaPolicy:
    """The policy for ``llama:WHERE``.

    Raises:
        ConfigurationError: llama.cpp or the file is missing, or an option will not do; the message says which.
    """
    known = {"mode", "think", "temperature", "max_tokens", "top_p", "timeout", "retries", "send_seed"}
    for name in options:
        if name not in known:
            raise UnknownNameError("option of llama policies", name, known)
    if not where:
        raise ConfigurationError("llama:…: write llama:smollm2 or llama:PATH.gguf")
    require_llama_cpp()
    return LlamaPolicy(find_gguf(where), f"llama:{where}", **options)
