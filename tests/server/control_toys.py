"""An environment that shows what the control plane carries, and helpers to reach a served one in this process."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any

import aiohttp

from mcpgym import Config, Environment, LazyTasks, Message, Task, ToolError, Transcript, reward, task_id, tool
from mcpgym.control_client import HttpControl
from mcpgym.episodes import Episodes, Limits
from mcpgym.serving import Serving, serving

SECRET = "a-secret-of-the-tests-0123456789"


class DeskConfig(Config):
    size: int = 10
    """How many tasks a split has."""
    ceiling: float = 100.0
    """The highest count."""


class Desk(Environment[Task, dict[str, Any], DeskConfig]):
    """Counts; waits; fails when told to."""

    name = "desk"
    version = "7"
    description = "Counts, waits and fails."
    config_class = DeskConfig
    cancelled = 0  # of the class: how many waits were cut short

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(
            self.config.size,
            lambda i: Task(task_id(split, i), split, ({"role": "user", "content": f"Count to {i}."},), {"hidden": i}),
        )

    def reset(self, task: Task, seed: int) -> dict[str, Any]:
        if seed == 666:
            raise RuntimeError("no such beast")
        return {"count": 0, "seed": seed, "asked": 0, "log": []}

    def is_done(self, state: dict[str, Any]) -> bool:
        return state["count"] >= self.config.ceiling

    @property
    def max_turns(self) -> int:
        return 5_000

    def respond(self, state: dict[str, Any], transcript: Transcript) -> list[Message] | None:
        state["asked"] += 1
        if transcript.answer == "break":
            raise RuntimeError("respond broke")
        return [{"role": "user", "content": f"Sure? You said {transcript.answer!r}"}] if state["asked"] == 1 else None

    @tool(inline=True)
    def add(self, state: dict[str, Any], number: Annotated[int, "What to add."]) -> str:
        """Add a number."""
        if number < 0:
            raise ToolError("only upwards: 0 or more")
        state["count"] += number
        state["log"].append(number)
        return str(state["count"])

    @tool(inline=True)
    def log(self, state: dict[str, Any]) -> str:
        """What was added, in order."""
        return repr(state["log"])

    @tool(inline=True)
    def crash(self, state: dict[str, Any]) -> str:
        """Fail as a bug does."""
        raise ZeroDivisionError("a bug")

    @tool
    def work(self, state: dict[str, Any], seconds: Annotated[float, "How long."], number: Annotated[int, "n"]) -> str:
        """Take a while in a thread, then add a number."""
        time.sleep(seconds)
        state["log"].append(number)
        return str(number)

    @tool
    async def wait(self, state: dict[str, Any], seconds: Annotated[float, "How long."]) -> str:
        """Take a while on the loop."""
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            type(self).cancelled += 1
            raise
        return "waited"

    @tool(inline=True)
    def block(self, state: dict[str, Any], seconds: Annotated[float, "How long."]) -> str:
        """Stop the whole loop, as no tool should."""
        time.sleep(seconds)
        return "blocked"

    @reward(high=1e9)
    def counted(self, state: dict[str, Any]) -> float:
        return float("nan") if state["count"] == 99 else float(state["count"])

    @reward(weight=0.5)
    def polite(self, transcript: Transcript) -> float:
        return float("please" in transcript.answer)


def desk(**limits: Any) -> Episodes:
    return Episodes({"desk": Desk()}, Limits(**limits) if limits else None)


@contextlib.asynccontextmanager
async def served(episodes: Episodes | None = None, **options: Any) -> AsyncIterator[tuple[Serving, HttpControl]]:
    """A server in this loop and a client of its control plane."""
    shown = desk() if episodes is None else episodes  # an empty Episodes is false
    async with (
        serving(shown, **{"secret": SECRET, **options}) as server,
        HttpControl(server.control_url, server.secret) as control,
    ):
        yield server, control


@contextlib.asynccontextmanager
async def http(server: Serving, secret: str | None = SECRET) -> AsyncIterator[aiohttp.ClientSession]:
    """A bare HTTP client of the control listener, as curl would be one."""
    unix = server.control_url.startswith("unix:")
    connector = aiohttp.UnixConnector(server.control_url.removeprefix("unix:")) if unix else aiohttp.TCPConnector()
    headers = {} if secret is None else {"authorization": f"Bearer {secret}"}
    base = "http://control" if unix else server.control_url
    async with aiohttp.ClientSession(base, connector=connector, headers=headers) as session:
        yield session


async def busy(server: Serving, *tokens: str) -> None:
    """Wait until each of these episodes answers a call."""
    async with asyncio.timeout(10):
        while not all(server.episodes.get(token).busy for token in tokens):
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)  # a few turns of the loop, in which the tool itself begins
