"""The official Python SDK 1.x plays: a session for each game, no model."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from player import Seat, play_all


async def play(seat: Seat, model: str) -> list[dict[str, Any]]:
    async with contextlib.AsyncExitStack() as stack:
        if seat.way == "stdio":
            command, *arguments = seat.command
            log = stack.enter_context((Path(seat.home) / "stdio.log").open("w"))
            parameters = StdioServerParameters(command=command, args=arguments)
            streams: Any = await stack.enter_async_context(stdio_client(parameters, errlog=log))
        else:
            streams = await stack.enter_async_context(streamable_http_client(seat.url))
        session = await stack.enter_async_context(ClientSession(*streams[:2]))
        await session.initialize()

        async def call(name: str, arguments: dict[str, Any]) -> str:
            return "".join(part.text for part in (await session.call_tool(name, arguments)).content)

        tools = (await session.list_tools()).tools
        await seat.play(call)
        return [{"name": tool.name, "description": tool.description, "inputSchema": tool.inputSchema} for tool in tools]


asyncio.run(play_all(play))
