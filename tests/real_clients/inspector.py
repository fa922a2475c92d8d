"""MCP Inspector from the command line: ``--cli``, a process for each call; and ``mcpdo``, which keeps a connection.

Over a URL a game goes on from call to call, whoever connects. Over stdio the process is the game: with ``--cli`` each
call would begin a new one, so there the Inspector's other command plays, whose daemon holds the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import node_tools
from tests.real_clients.clients import Client, Played, Seat
from tests.real_clients.programs.player import InStep, next_call

PACKAGE = "@modelcontextprotocol/inspector"
SECONDS = 60
TOOL_ERROR = 5
"""What both commands exit with after a result that is an error."""
PATIENTLY = ("--connect-timeout", "60000")

Run = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Calls the tool of a name, or lists the tools for an empty one; what was printed, read as JSON."""
Daemon = Callable[[str, Seat], Awaitable[Run]]
"""Connects to a seat's server under a name."""


def client() -> Client:
    """The Inspector's commands, without its page."""
    return Client("MCP Inspector (`--cli`; stdio: `mcpdo`)", _version, _play, _missing)


def _version() -> str:
    described = json.loads((node_tools.package(PACKAGE) / "package.json").read_text("utf-8"))
    return f"{PACKAGE} {described['version']}"


def _missing() -> str | None:
    try:
        node_tools.command(PACKAGE, "mcpdo")
    except node_tools.NotInstalled as problem:
        return str(problem)
    return None


async def _play(seats: Sequence[Seat]) -> Sequence[Played | Exception]:
    """One way after another: each of its games keeps a process of Node.js busy, and a machine bears a few of them."""
    played: dict[int, Any] = {}
    async with _daemon() as daemon:
        for way in dict.fromkeys(seat.way for seat in seats):
            mine = {place: seat for place, seat in enumerate(seats) if seat.way == way}
            steps = InStep([str(place) for place in mine])
            listed: dict[str, asyncio.Future[Any]] = {}
            games = [_game(str(place), seat, daemon, steps, listed) for place, seat in mine.items()]
            played |= dict(zip(mine, await asyncio.gather(*games, return_exceptions=True), strict=True))
    return [played[place] for place in range(len(seats))]


async def _game(name: str, seat: Seat, daemon: Daemon, steps: InStep, listed: dict[str, asyncio.Future[Any]]) -> Played:
    """``listed`` has the tools of each URL: three games at one of them ask once, as a process is a second's work."""
    try:
        run = by_process(seat) if seat.url else await daemon(name, seat)
        texts: list[str] = []
        while (wanted := next_call(seat.way, seat.task, seat.cells, texts)) is not None:
            await steps.move(name)
            (content,) = (await run(*wanted))["content"]
            texts.append(content["text"])
        if (server := seat.url or name) not in listed:
            listed[server] = asyncio.ensure_future(run("", {}))
        tools = (await listed[server])["tools"]
        # As the server sent them: title and _meta are for people, not for a model.
        return Played([{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools], texts)
    finally:
        await steps.leave(name)


def by_process(seat: Seat) -> Run:
    """``mcp-inspector --cli``: each call is a process of its own, which connects anew."""
    command = [*node_tools.command(PACKAGE, "mcp-inspector"), "--cli", *PATIENTLY]
    target = [seat.url] if seat.url else list(seat.command)

    async def run(tool: str, arguments: Mapping[str, Any]) -> Any:
        pairs = [f"{key}={value}" for key, value in arguments.items()]
        called = ["tools/call", "--tool-name", tool, "--tool-arg", *pairs] if tool else ["tools/list"]
        return await _printed([*command, "--method", *called, "--", *target], seat.home)

    return run


@contextlib.asynccontextmanager
async def _daemon() -> AsyncIterator[Daemon]:
    """``mcpdo``: each call is a process that asks a daemon, ours alone, which holds a connection by its name."""
    folder = Path(tempfile.mkdtemp(prefix="mcpdo-"))  # a short path: a unix socket lies there
    private = {"MCP_INSPECTOR_DAEMON_DIR": str(folder), "MCP_INSPECTOR_DAEMON_TOKEN": folder.name}
    command = [*node_tools.command(PACKAGE, "mcpdo"), "--format", "json"]

    async def connect(name: str, seat: Seat) -> Run:
        mine = [*command, "--connection", name]
        await _printed([*mine, "connect", "--era", "auto", *PATIENTLY, "--", *seat.command], seat.home, private)

        async def run(tool: str, arguments: Mapping[str, Any]) -> Any:
            called = ["tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
            return await _printed([*mine, *(called if tool else ["tools/list"])], seat.home, private)

        return run

    try:
        yield connect
    finally:
        await _printed([*command, "daemon", "stop"], folder, private)
        shutil.rmtree(folder, ignore_errors=True)


async def _printed(command: Sequence[str], home: Path, more: Mapping[str, str] | None = None) -> Any:
    """Run ``command`` with a home of its own; what it printed, as JSON."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "MCP_INSPECTOR_SECRET_STORE": "memory",
        "NODE_COMPILE_CACHE": str(node_tools.HOME / "compiled"),
        **(more or {}),
    }
    process = await asyncio.create_subprocess_exec(
        *command,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        raise
    if process.returncode not in (0, TOOL_ERROR):
        raise RuntimeError(f"exit {process.returncode}: {(out + err).decode(errors='replace')[-1000:]}")
    return json.loads(out)
