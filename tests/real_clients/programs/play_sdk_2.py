"""The official Python SDK 2.x plays: a client for each game, no model."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from player import Seat, play_all


async def play(seat: Seat, model: str) -> list[dict[str, Any]]:
    with contextlib.ExitStack() as stack:
        server: Any = seat.url
        if seat.way == "stdio":
            command, *arguments = seat.command
            log = stack.enter_context((Path(seat.home) / "stdio.log").open("w"))
            server = stdio_client(StdioServerParameters(command=command, args=arguments), errlog=log)
        async with Client(server) as client:

            async def call(name: str, arguments: dict[str, Any]) -> str:
                return "".join(part.text for part in (await client.call_tool(name, arguments)).content)

            tools = (await client.list_tools()).tools
            await seat.play(call)
            return [
                {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema} for tool in tools
            ]


asyncio.run(play_all(play))
