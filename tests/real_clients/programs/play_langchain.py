"""LangChain plays: an agent for each game, with a chat-completions model.

By URL each call has a session of its own, as is the default. Over stdio that would be a process of its own, hence a new
game, so a session is opened there, as the adapters' page shows.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from player import Seat, play_all


async def play(seat: Seat, model: str) -> None:
    connection: Any = {"transport": "http", "url": seat.url}
    if seat.way == "stdio":
        command, *arguments = seat.command
        connection = {"transport": "stdio", "command": command, "args": arguments}
    client = MultiServerMCPClient({"game": connection})
    async with contextlib.AsyncExitStack() as stack:
        if seat.way == "stdio":
            tools = await load_mcp_tools(await stack.enter_async_context(client.session("game")))
        else:
            tools = await client.get_tools()
        agent = create_agent(ChatOpenAI(model=seat.name, base_url=model, api_key="none"), tools)
        await agent.ainvoke({"messages": [("user", "Play.")]}, {"recursion_limit": 60})


asyncio.run(play_all(play))
