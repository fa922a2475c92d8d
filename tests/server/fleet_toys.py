"""A fleet of desks: workers that are real processes, and what speaks to them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
from control_toys import SECRET, desk

from mcpgym.control import OpenedEpisode
from mcpgym.control_client import HttpControl
from mcpgym.fleet.serving import FleetServing, WorkerCommand, fleet_serving

DEADLY = 667
"""A seed with which no worker outlives the opening of an episode."""
WORKER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from mcpgym.fleet.workers import read_orders
orders = read_orders()
from control_toys import Desk
from mcpgym.episodes import Episodes, Limits
from mcpgym.serving import run_server
class Table(Desk):
    def reset(self, task, seed):
        return os._exit(3) if seed == 667 else super().reset(task, seed)
sys.exit(run_server(
    Episodes({"desk": Table()}, Limits(live=orders.cap), orders.name), player_socket=orders.player_socket,
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


@contextlib.contextmanager
def shared_fleet(live: int) -> Iterator[Callable[[Callable[[FleetServing, HttpControl], Awaitable[None]]], None]]:
    """A fleet for several tests: what is yielded runs a coroutine with it, in the loop that it lives in."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait_for(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(120)

    running = fleet(live=live)
    try:
        server, control = wait_for(running.__aenter__())
        try:
            yield lambda test: wait_for(test(server, control))
        finally:
            wait_for(running.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


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


def written(episode: OpenedEpisode, name: str, arguments: dict[str, Any], *more: str, method: str = "POST") -> bytes:
    """A call as bytes: in chunks where ``more`` headers say so, else with its length."""
    body = json.dumps(call(name, arguments)).encode()
    lines = [f"{method} /e/{episode.token}/mcp HTTP/1.1", "Host: localhost", *more]
    lines += [f"{header}: {value}" for header, value in headers(name).items()]
    if "Transfer-Encoding: chunked" in more:
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    else:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def exchanged(url: str, *parts: bytes, answers: int = 0) -> bytes:
    """All that comes back on a new connection for ``parts``, sent one after another.

    It is closed here once there are so many ``answers``; without their number, when nothing comes any more.
    """
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0.05)
    answer = b""
    with contextlib.suppress(TimeoutError):
        while not answers or answer.count(b"HTTP/1.1 ") < answers:
            part = await asyncio.wait_for(reader.read(2**16), 20 if answers else 0.2 if answer else 0.6)
            if not part:
                break
            answer += part
    writer.write_eof()
    answer += await asyncio.wait_for(reader.read(), 20)
    writer.close()
    return answer


async def post(session: aiohttp.ClientSession, url: str, name: str, arguments: dict[str, Any]) -> tuple[int, Any]:
    """Send one call; the status and the JSON that answers it."""
    async with session.post(url, data=json.dumps(call(name, arguments)), headers=headers(name)) as answer:
        return answer.status, json.loads(await answer.read())
