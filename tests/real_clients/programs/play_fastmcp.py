"""fastmcp's client plays: one for each game, no model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from player import Seat, play_all


async def play(seat: Seat, model: str) -> list[dict[str, Any]]:
    server: Any = seat.url
    if seat.way == "stdio":
        command, *arguments = seat.command
        server = StdioTransport(command, arguments, keep_alive=False, log_file=Path(seat.home) / "stdio.log")
    async with Client(server) as client:

        async def call(name: str, arguments: dict[str, Any]) -> str:
            result = await client.call_tool(name, arguments, raise_on_error=False)
            return "".join(part.text for part in result.content)

        tools = await client.list_tools()
        await seat.play(call)
        return [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema} for tool in tools
        ]


asyncio.run(play_all(play))
