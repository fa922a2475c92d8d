"""Servers that people bring, made by factories; and what is checked of any of them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import mcp_types as types
from fastmcp import Context, FastMCP
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from pydantic import Field

from mcpgym import CallRecord, Environment, Task, reward
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.messages import user
from mcpgym.own_server import FastMCPEnvironment, ServerEpisode, StdioEnvironment

TOY = str(Path(__file__).with_name("own_server_toy.py"))
log: list[str] = []
"""What lifespans did."""


def make_notebook(seed: int = 0) -> tuple[FastMCP, dict[str, str]]:
    """A FastMCP server with a state that the closure holds, a lifespan, and tools that give all kinds of answers."""
    notes: dict[str, str] = {}

    @contextlib.asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[None]:
        log.append("begin")
        try:
            yield
        finally:
            await asyncio.sleep(0)
            log.append("end")

    server: FastMCP = FastMCP("Notebook", instructions="Write notes.", lifespan=lifespan)

    @server.tool
    def write(
        title: Annotated[str, Field(description="Its title.")], text: Annotated[str, Field(description="Its text.")]
    ) -> str:
        """Write a note."""
        notes[title] = text
        return f"{len(notes)} notes"

    @server.tool
    def titles(limit: int | None = None, kind: Literal["all", "long"] = "all") -> list[str]:
        """List the titles."""
        return sorted(notes)[:limit]

    @server.tool
    def number() -> int:
        """Say the seed."""
        return seed

    @server.tool
    def fail() -> str:
        """Fail."""
        raise ValueError("the pencil is broken")

    @server.tool
    def picture() -> Any:
        """Draw."""
        from fastmcp.utilities.types import Image

        return ["a drawing:", Image(data=b"\x89PNG", format="png")]

    @server.tool
    def slow(seconds: float) -> str:
        """Take long."""
        time.sleep(seconds)
        notes["slow"] = threading.current_thread().name
        return "done"

    @server.tool
    async def ask(context: Context) -> str:
        """Ask the user."""
        found = await context.elicit("really?", response_type=str)
        return str(found)

    @server.tool
    async def tell(context: Context) -> str:
        """Report progress and log."""
        await context.report_progress(1, 2)
        await context.info("half way")
        return "told"

    @server.tool
    async def remember(context: Context, word: str) -> str:
        """Keep a word in the session."""
        before = await context.get_state("word")
        await context.set_state("word", word)
        return f"before: {before}"

    @server.tool
    def unlock() -> str:
        """Add a tool."""
        server.tool(lambda: "secret", name="secret", description="Secret.")
        return "unlocked"

    return server, notes


class Notebook(FastMCPEnvironment):
    name = "notebook"
    factory = make_notebook
    hidden_tools = ("number",)
    call_seconds = 5.0

    def tasks(self, split: str) -> Sequence[Task]:
        return [
            Task(f"{split}-{i}", split, [user(f"Write a note called {split}{i}.")], {"title": f"{split}{i}"})
            for i in (0, 1)
        ]

    def is_done(self, state: ServerEpisode) -> bool:
        return "end" in state.state

    @reward
    def wrote(self, episode: ServerEpisode, task: Task) -> float:
        """1 if there is a note of that title."""
        return float(task.info["title"] in episode.state)

    @reward(weight=0)
    async def asked(self, episode: ServerEpisode) -> float:
        """The seed, as the server itself says it."""
        return float(int(await episode.ask("number")) % 2)

    @reward(weight=0)
    def busy(self, calls: Sequence[CallRecord]) -> float:
        """Whether anything was called."""
        return float(bool(calls))


def make_official() -> MCPServer:
    """The official SDK's."""
    server = MCPServer("Bank")
    balance = {"sum": 0}

    @server.tool()
    def pay(amount: int) -> int:
        """Pay in."""
        balance["sum"] += amount
        return balance["sum"]

    return server


def make_low_level() -> Server[Any]:
    """The official SDK's low-level one, with structured content alone and a state of its session."""
    count = [0]

    described = {"type": "integer", "description": "Any."}
    schema = {"type": "object", "properties": {"episode": described, "episode_handle": described}}

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name="start_episode", description="Count.", input_schema=schema)]
        )

    async def call_tool(context: Any, params: Any) -> types.CallToolResult:
        count[0] += 1
        return types.CallToolResult(content=[], structured_content={"count": count[0]})

    return Server("Counter", on_list_tools=list_tools, on_call_tool=call_tool)


def over(factory: Any, name: str = "own") -> FastMCPEnvironment:
    """An environment over what ``factory`` makes."""
    return _made(FastMCPEnvironment, name, {"factory": staticmethod(factory)})  # type: ignore[no-any-return]


def toy(*manners: str, **more: Any) -> StdioEnvironment:
    """An environment over the stdio toy."""
    words = more.pop("command", (sys.executable, "-I", "-S", TOY, *manners))
    return _made(StdioEnvironment, "toy", {"command": words, "warm": 0, **more})  # type: ignore[no-any-return]


def _made(base: type, name: str, more: dict[str, Any]) -> Any:
    def tasks(self: Any, split: str) -> Sequence[Task]:
        return [Task(f"{split}-0", split, [user("Do it.")])]

    def read(self: Any, calls: Sequence[CallRecord]) -> float:
        return float(bool(calls))

    return type(base)(base.__name__, (base,), {"name": name, "tasks": tasks, "called": reward(read), **more})()


@contextlib.asynccontextmanager
async def episodes(
    environment: Environment[Any, Any, Any], count: int = 1
) -> AsyncIterator[tuple[Episodes, list[Episode]]]:
    """Live episodes of it."""
    served = Episodes({environment.name: environment})
    try:
        yield served, [await served.open(environment.name, split="test", seed=seed) for seed in range(count)]
    finally:
        await served.aclose()


async def said(episode: Episode, tool: str, **arguments: Any) -> str:
    """What a call answered."""
    return (await episode.call(tool, arguments)).text


def open_files() -> int:
    """File descriptors of this process, where the system lists them."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0
