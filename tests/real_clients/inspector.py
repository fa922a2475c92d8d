"""MCP Inspector from the command line: ``--cli``, a process for each call, and ``mcpdo``, which keeps a connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import node_tools
from tests.real_clients.clients import CannotPlay, Client, Played, Seat
from tests.real_clients.programs.player import InStep, next_call

PACKAGE = "@modelcontextprotocol/inspector"
SECONDS = 60
TOOL_ERROR = 5
"""What both exit with after a result that is an error."""
PATIENTLY = ("--connect-timeout", "60000")
AT_ONCE = 3
"""Processes of Node.js at a time: enough for three games, and no more than a small machine can bear."""


def cli() -> Client:
    """``mcp-inspector --cli``: each call is a process of its own, which connects anew."""
    return Client("MCP Inspector `--cli`", _version, _play_with(_by_process), _missing)


def mcpdo() -> Client:
    """``mcpdo``: each call is a process that asks a daemon, and the daemon holds the connection."""
    return Client("MCP Inspector `mcpdo`", _version, _play_by_daemon, _missing)


def _version() -> str:
    described = json.loads((node_tools.package(PACKAGE) / "package.json").read_text("utf-8"))
    return f"{PACKAGE} {described['version']}"


def _missing() -> str | None:
    try:
        node_tools.command(PACKAGE, "mcp-inspector")
    except node_tools.NotInstalled as problem:
        return str(problem)
    return None


Run = Callable[[str, Mapping[str, Any]], Any]
"""Lists tools (``""``) or calls the named one; what was printed, read as JSON."""
Connect = Callable[[str, Seat, asyncio.Semaphore], "contextlib.AbstractAsyncContextManager[Run]"]


def _play_with(connect: Connect) -> Callable[[Sequence[Seat]], Any]:
    async def play(seats: Sequence[Seat]) -> Sequence[Played | Exception]:
        names = [f"seat-{place}" for place in range(len(seats))]
        ways = {seat.way: [name for name, other in zip(names, seats, strict=True) if other.way == seat.way] for seat in seats}
        steps = {way: InStep(games) for way, games in ways.items()}
        room = asyncio.Semaphore(AT_ONCE)

        async def one(name: str, seat: Seat) -> Played:
            try:
                async with connect(name, seat, room) as run:
                    return await _game(seat, run, lambda: steps[seat.way].move(name))
            finally:
                await steps[seat.way].leave(name)

        return await asyncio.gather(*map(one, names, seats), return_exceptions=True)  # type: ignore[return-value]

    return play


async def _game(seat: Seat, run: Run, move: Callable[[], Any]) -> Played:
    tools = (await run("", {}))["tools"]
    texts: list[str] = []
    while (wanted := next_call(seat.way, seat.task, seat.cells, texts)) is not None:
        await move()
        (content,) = (await run(*wanted))["content"]
        texts.append(content["text"])
        if seat.way == "stdio" and len(texts) > 1 and not _goes_on(texts[-2], texts[-1]):
            raise CannotPlay("a process per call: each call meets a new game")
    return Played(tools, texts)


def _goes_on(before: str, after: str) -> bool:
    """Whether the board of an answer has all the marks of the one before."""
    marks = [set(text.rpartition("X ")[2].partition(" · ")[0].split()) - {"none"} for text in (before, after)]
    return marks[0] <= marks[1]


@contextlib.asynccontextmanager
async def _by_process(name: str, seat: Seat, room: asyncio.Semaphore) -> AsyncIterator[Run]:
    target = [seat.url] if seat.url else list(seat.command)
    command = [*node_tools.command(PACKAGE, "mcp-inspector"), "--cli", *PATIENTLY]

    async def run(tool: str, arguments: Mapping[str, Any]) -> Any:
        pairs = [f"{key}={value}" for key, value in arguments.items()]
        called = ["--method", "tools/call", "--tool-name", tool, *(["--tool-arg", *pairs] if pairs else [])]
        # A command is given last, as its own options must stay its own.
        return await _printed([*command, *(called if tool else ["--method", "tools/list"]), "--", *target], seat.home, room)

    yield run


async def _play_by_daemon(seats: Sequence[Seat]) -> Sequence[Played | Exception]:
    folder = Path(tempfile.mkdtemp(prefix="mcpdo-"))  # a short path: a unix socket lies there
    room = asyncio.Semaphore(AT_ONCE)
    command = [*node_tools.command(PACKAGE, "mcpdo"), "--format", "json"]
    daemon = {"MCP_INSPECTOR_DAEMON_DIR": str(folder), "MCP_INSPECTOR_DAEMON_TOKEN": folder.name}

    @contextlib.asynccontextmanager
    async def connect(name: str, seat: Seat, room: asyncio.Semaphore) -> AsyncIterator[Run]:
        target = [seat.url] if seat.url else list(seat.command)
        mine = [*command, "--connection", name]
        await _printed([*mine, "connect", "--era", "auto", *PATIENTLY, "--", *target], seat.home, room, daemon)

        async def run(tool: str, arguments: Mapping[str, Any]) -> Any:
            called = ["tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
            return await _printed([*mine, *(called if tool else ["tools/list"])], seat.home, room, daemon)

        yield run

    try:
        return await _play_with(connect)(seats)
    finally:
        await _printed([*command, "daemon", "stop"], folder, room, daemon)
        shutil.rmtree(folder, ignore_errors=True)


async def _printed(command: Sequence[str], home: Path, room: asyncio.Semaphore, more: Mapping[str, str] = {}) -> Any:
    """Run ``command`` with a home of its own; what it printed, as JSON."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "MCP_INSPECTOR_SECRET_STORE": "memory", **more}
    async with room:
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
    return json.loads(out) if out.strip() else None
