"""What proxying a brought server costs: one FastMCP tool by FastMCP's own client in process, and as an environment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Annotated

from fastmcp import Client, FastMCP
from pydantic import Field

from mcpgym import Task
from mcpgym.episodes import Episodes
from mcpgym.messages import user
from mcpgym.own_server import FastMCPEnvironment

THEIRS, OURS = "FastMCP server by its own client, in process", "the same server brought as an environment"


def make_server() -> FastMCP:
    """Adds up what it is given."""
    server: FastMCP = FastMCP("Counter")
    total = [0]

    @server.tool
    async def add(number: Annotated[int, Field(description="What to add.")]) -> str:
        """Add a number; answers the sum so far."""
        total[0] += number
        return f"The sum is {total[0]}."

    return server


class Brought(FastMCPEnvironment):
    """The counter."""

    name = "counter"
    factory = make_server

    def tasks(self, split: str) -> Sequence[Task]:
        """One."""
        return [Task(f"{split}-0", split, [user("Add.")])]


async def brought_server(quick: bool) -> dict[str, float]:
    """CPU microseconds of a call, by either; round about round."""
    calls, rounds = (50, 2) if quick else (500, 10)
    spent: dict[str, list[float]] = {THEIRS: [], OURS: []}
    episodes = Episodes({"counter": Brought()})
    episode = await episodes.open("counter", split="test")
    async with Client(make_server(), mode="legacy") as client:
        for number in range(rounds + 1):
            started = time.process_time()
            for _ in range(calls):
                await client.call_tool("add", {"number": 1})
            between = time.process_time()
            for _ in range(calls):
                assert not (await episode.call("add", {"number": 1})).is_error
            if number:  # the first is to warm up
                spent[THEIRS].append((between - started) / calls * 1e6)
                spent[OURS].append((time.process_time() - between) / calls * 1e6)
    await episodes.aclose()
    return {name: median(rows) for name, rows in spent.items()}
