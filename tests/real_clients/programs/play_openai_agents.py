"""The OpenAI Agents SDK plays: an agent for each game, with a chat-completions model."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai import AsyncOpenAI
from player import Seat, play_all

set_tracing_disabled(True)


async def play(seat: Seat, model: str) -> None:
    server: Any
    if seat.way == "stdio":
        command, *arguments = seat.command
        server = MCPServerStdio({"command": command, "args": arguments}, client_session_timeout_seconds=60)
    else:
        server = MCPServerStreamableHttp({"url": seat.url})
    async with server, AsyncOpenAI(base_url=model, api_key="none") as client:
        chat = OpenAIChatCompletionsModel(seat.name, client)
        await Runner.run(Agent("player", model=chat, mcp_servers=[server]), "Play.", max_turns=20)


asyncio.run(play_all(play))
