"""A fleet of desks: workers that are real processes, and what speaks to them."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
from control_toys import SECRET, desk

from mcpgym.control_client import HttpControl
from mcpgym.fleet.serving import FleetServing, WorkerCommand, fleet_serving

WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
from mcpgym.fleet.workers import read_orders
orders = read_orders()
from control_toys import Desk
from mcpgym.episodes import Episodes, Limits
from mcpgym.serving import run_server
sys.exit(run_server(
    Episodes({"desk": Desk()}, Limits(live=orders.cap), orders.name), player_socket=orders.player_socket,
    control_socket=orders.control_socket, secret=orders.secret, public_url=orders.public_url,
    announce=lambda server: None, drain_seconds=orders.what["drain"],
))
"""
COMMAND = WorkerCommand([sys.executable, "-c", WORKER, str(Path(__file__).parent)], {"drain": 20.0})


@contextlib.asynccontextmanager
async def fleet(workers: int = 2, live: int = 1000) -> AsyncIterator[tuple[FleetServing, HttpControl]]:
    """A running fleet and a client of its control plane."""
    async with (
        fleet_serving(desk(live=live), COMMAND, workers, secret=SECRET) as server,
        HttpControl(server.control_url, SECRET) as control,
    ):
        yield server, control


def call(name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A tools/call of the 2026-07-28 protocol."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": meta, **more}}  # fmt: skip  # noqa: E501


def headers(name: str) -> dict[str, str]:
    """What a client sends with it."""
    return {
        "content-type": "application/json", "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name,
    }  # fmt: skip


async def post(session: aiohttp.ClientSession, url: str, name: str, arguments: dict[str, Any]) -> tuple[int, Any]:
    """Send one call; the status and the JSON that answers it."""
    async with session.post(url, data=json.dumps(call(name, arguments)), headers=headers(name)) as answer:
        return answer.status, json.loads(await answer.read())
