"""An environment whose tools can be slow, stuck, cancelled and broken, for tests of episodes."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from mcpgym import Config, Environment, Task, ToolError, Transcript, reward, tool
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes, Limits
from mcpgym.messages import user


@dataclass
class Bench:
    """The state: a log of what happened, and gates that tests open."""

    log: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    inside: int = 0
    most_inside: int = 0
    looked_while_busy: int = 0
    done: bool = False
    closed: int = 0

    def enter(self) -> None:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)


class LabConfig(Config):
    turns: int = 0
    """The limit on turns; 0 for none."""
    tags: list[str] = []
    """Any texts."""


class Lab(Environment[Task, Bench, LabConfig]):
    name = "lab"
    config_class = LabConfig
    shut_down = 0

    @property
    def max_turns(self):
        return self.config.turns or None

    def tasks(self, split):
        return [Task(f"{split}-{i}", split, (user(f"{split} {i}"),), {"answer": "forty-two"}) for i in range(3)]

    def reset(self, task, seed):
        return Bench(done=seed == 99)

    @tool(inline=True)
    def now(self, bench: Bench, what: Annotated[str, "What."] = "") -> str:
        """Do it at once."""
        bench.enter()
        bench.log.append(f"now {what}")
        bench.inside -= 1
        return f"{len(bench.log)}"

    @tool(timeout=5)
    def block(self, bench: Bench, what: Annotated[str, "What."] = "") -> str:
        """Wait for the gate in a thread."""
        bench.enter()
        bench.log.append(f"begin {what}")
        bench.gate.wait(20)
        bench.log.append(f"end {what}")
        bench.inside -= 1
        return what

    @tool(timeout=0.15)
    def overrun(self, bench: Bench) -> str:
        """Wait for the gate in a thread, longer than it may."""
        bench.enter()
        bench.log.append("begin overrun")
        bench.gate.wait(20)
        bench.log.append("end overrun")
        bench.inside -= 1
        return "late"

    @tool
    async def wait(self, bench: Bench, seconds: Annotated[float, "How long."]) -> str:
        """Wait on the loop."""
        bench.enter()
        bench.log.append("begin wait")
        try:
            await asyncio.sleep(seconds)
            bench.log.append("end wait")
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)  # lets go of a process, say
            bench.log.append("let go")
            raise
        finally:
            bench.inside -= 1
        return "waited"

    @tool(timeout=0.1)
    async def forever(self, bench: Bench) -> str:
        """Wait on the loop, longer than it may."""
        await asyncio.sleep(60)
        return "never"

    @tool(inline=True)
    def finish(self, bench: Bench) -> str:
        """End the episode."""
        bench.done = True
        return "finished"

    @tool(inline=True)
    def crash(self, bench: Bench, how: Annotated[str, "How."]) -> Any:
        """Fail in many ways."""
        return _fail(how)

    @tool
    async def crash_async(self, bench: Bench, how: Annotated[str, "How."]) -> Any:
        """Fail in many ways, on the loop."""
        return _fail(how)

    @tool
    def crash_thread(self, bench: Bench, how: Annotated[str, "How."]) -> Any:
        """Fail in many ways, in a thread."""
        return _fail(how)

    def is_done(self, bench):
        bench.looked_while_busy += bench.inside > 0
        return bench.done

    def invalid_arguments(self, bench, tool, problem):
        bench.log.append(f"invalid {tool}, {bench.inside} inside")
        return problem

    async def respond(self, bench, transcript: Transcript):
        match transcript.answer:
            case "bye":
                return None
            case "text":
                return "a text"
            case "crash":
                raise KeyError("secret-inside")
        return [user("go on")]

    @reward
    def calm(self, bench: Bench, calls: Any) -> float:
        return 1.0 if bench.inside == 0 else 0.0

    async def close(self, bench):
        bench.closed += 1
        bench.log.append(f"closed, {bench.inside} inside")
        bench.gate.set()

    def shutdown(self):
        self.shut_down += 1


def _fail(how: str) -> Any:
    match how:
        case "tool error":
            raise ToolError("cell 4 is taken")
        case "error":
            raise ValueError("secret-inside")
        case "exit":
            sys.exit("secret-inside")
        case "timeout":
            raise TimeoutError("secret-inside")
        case "stop":
            raise StopIteration("secret-inside")
        case "cancelled":
            raise asyncio.CancelledError("secret-inside")
        case "object":
            return object()
        case "surrogate":
            return "file \udcff"
        case "nothing":
            return None
        case "number":
            return 7
    return [how]


def lab(limits: Limits | None = None, **config: Any) -> Episodes:
    return Episodes({"lab": Lab(LabConfig(**config))}, limits)


async def opened(seed: int = 0, **config: Any) -> tuple[Episodes, Episode]:
    episodes = lab(**config)
    return episodes, await episodes.open("lab", split="train", seed=seed)


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Wait for what a thread does; a fixed pause would be too short on a loaded machine."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)
