"""The loop in which a model plays, in this process: ask, call the tools, append, until the episode is over.

Every call carries a key, so that the server answers a call that verifiers' client sends again with the answer of its
first try: a move is made once, whatever happens to the connection. Other harnesses work too (``--env.agent.harness``);
of those, a call that is sent again is only the same call while its first try is still being answered.
"""

from __future__ import annotations

import secrets
import ssl
from contextlib import AsyncExitStack
from functools import cache
from typing import Any

import verifiers.v1 as vf
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harnesses.utils.mcp import MCPConnection, mcp_content_to_chat_content

from exported_env.messages import tool_answer
from exported_env.parse import MalformedCall, ParsedCall, parse
from exported_env.playing import Messages, plain, remember

KEY = "mcpgym/idempotencyKey"
DONE = "mcpgym/done"
MOST_CALLS = 1_000
"""How many tool calls a rollout may make, as in mcpgym's own loop."""


class EpisodeHarnessConfig(vf.HarnessConfig):
    """``--env.agent.harness.*``."""


class EpisodeHarness(vf.Harness[EpisodeHarnessConfig]):
    """Plays an episode as ``mcpgym eval`` does: it stops when the episode is over, without one more turn."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Play until the episode is over, the model makes no call, or verifiers takes no more turns."""
        async with AsyncExitStack() as stack:
            http = DefaultAsyncHttpxClient(verify=certificates())
            model = AsyncOpenAI(base_url=endpoint, api_key=secret, timeout=None, http_client=http)
            await stack.enter_async_context(model)
            table = Table(self.config.tool_timeout)
            stack.push_async_callback(table.aclose)
            try:
                await table.open(mcp_urls)
                await self._play(model, ctx.model, trace, table, self._opening(data))
            except ExceptionGroup as group:  # the MCP client's: what is in it says more than that there is one
                raise ConnectionError(f"the episode could not be reached: {innermost(group)}") from group
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    def _opening(self, data: vf.TaskData) -> list[vf.Message]:
        """What has been said: the prompt, and in a conversation that goes on, all of it."""
        system, prompt = self.resolve_prompt(data)
        said = [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else list(prompt or [])
        return [vf.SystemMessage(content=system), *said] if system else said

    async def _play(self, model: AsyncOpenAI, name: str, trace: vf.Trace, table: Table, said: list[Any]) -> None:
        wire = [message_to_wire(message) for message in said]
        kept: Messages = plain(said)
        remember(trace.id, kept)
        options: dict[str, Any] = {"tools": table.tools} if table.tools else {}
        made = 0
        while True:
            completion = await model.chat.completions.create(model=name, messages=wire, **options)
            choice = completion.choices[0]
            turn = choice.message.model_dump(exclude_none=True)
            wire.append(turn)
            said_now, calls = parse(turn)
            kept.append(dict(said_now))
            if choice.finish_reason == "length" or not calls:
                return
            over = False
            for call in calls:
                made += 1
                text, is_error, done = await table.call(call) if made <= MOST_CALLS else _TOO_MANY
                over |= done
                answer = tool_answer(call.call, text, is_error=is_error)
                kept.append(dict(answer))
                wire.append({name: value for name, value in answer.items() if name != "is_error"})
            if over or made >= MOST_CALLS:
                return


class Table:
    """The tools of one episode, over verifiers' own client, which connects anew and tries again when a call fails."""

    def __init__(self, seconds: float) -> None:
        self.tools: list[dict[str, Any]] = []
        self._seconds = seconds
        self._places: dict[str, MCPConnection] = {}
        self._connections: list[MCPConnection] = []

    async def open(self, urls: dict[str, str]) -> None:
        """List the tools at each URL."""
        for url in urls.values():
            connection = MCPConnection({"url": url, "timeout": self._seconds})
            self._connections.append(connection)
            for tool in (await connection.run(lambda client: client.list_tools())).tools:
                self._places[tool.name] = connection
                function = {"name": tool.name, "description": tool.description or "", "parameters": tool.input_schema}
                self.tools.append({"type": "function", "function": function})

    async def call(self, call: ParsedCall | MalformedCall) -> tuple[str, bool, bool]:
        """What a call is answered, whether that is an error, and whether the episode is over."""
        if isinstance(call, MalformedCall):
            return call.problem, True, False
        name, arguments = call.call["function"]["name"], dict(call.arguments)
        if name not in self._places:
            return f"there is no tool {name!r}; there is: {', '.join(self._places) or 'none'}", True, False
        meta: Any = {KEY: secrets.token_urlsafe(12)}  # one call, however often it is sent
        result = await self._places[name].run(lambda client: client.call_tool(name, arguments, meta=meta))
        content = mcp_content_to_chat_content(result.content)
        return str(content), bool(result.is_error), bool((result.meta or {}).get(DONE))

    async def aclose(self) -> None:
        """Close the connections."""
        for connection in self._connections:
            await connection.aclose()


def innermost(error: BaseException) -> str:
    """The first error within groups of errors, as a sentence."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


@cache
def certificates() -> ssl.SSLContext:
    """Whom to trust, read once: that takes longer than a whole game."""
    return ssl.create_default_context()


_TOO_MANY = (f"not run: a rollout may have {MOST_CALLS} tool calls", True, False)
