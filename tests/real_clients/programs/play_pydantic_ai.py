"""Pydantic AI plays: an agent for each game, with a chat-completions model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fastmcp.client.transports import StdioTransport
from player import Seat, play_all
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def play(seat: Seat, model: str) -> None:
    server: Any = seat.url
    if seat.way == "stdio":
        command, *arguments = seat.command
        server = StdioTransport(command, arguments, keep_alive=False, log_file=Path(seat.home) / "stdio.log")
    chat = OpenAIChatModel(seat.name, provider=OpenAIProvider(base_url=model, api_key="none"))
    await Agent(chat, toolsets=[MCPToolset(server, init_timeout=60)]).run("Play.")


asyncio.run(play_all(play))
