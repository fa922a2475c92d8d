"""An environment with something of everything, for tests: played here, and in a virtual environment of its own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any, Literal

from mcpgym import (
    CallRecord,
    Config,
    ConfigurationError,
    Environment,
    InfrastructureError,
    LazyTasks,
    Message,
    Task,
    ToolError,
    Transcript,
    derive_seed,
    reward,
    task_id,
    tool,
)
from mcpgym.messages import assistant, tool_call, user


@dataclass
class Box:
    """What an episode has."""

    goal: int
    total: int = 0
    refused: int = 0
    said: list[str] = field(default_factory=list)


class Manner(Config):
    """A section of what may be chosen."""

    thanks: bool = False
    """Whether it says thanks."""


class ToyConfig(Config):
    """What may be chosen."""

    most: int = 9
    """The largest goal."""
    mood: Literal["kind", "gruff"] = "kind"
    """How it talks."""
    notes: str = ""
    """A file that it would read."""
    manner: Manner = Manner()
    """How it behaves."""

    def reaches(self) -> Sequence[str]:
        return [f"notes={self.notes}"] if self.notes else ()


class Toy(Environment[Task, Box, ToyConfig]):
    """Add numbers up to a goal."""

    name = "toy-box"
    version = "7"
    description = "Add numbers up to a goal."
    instructions = "Use add."
    config_class = ToyConfig
    max_turns = 6

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(
            40, lambda i: Task(task_id(split, i), split, (user("Add."),), {"seed": derive_seed(split, i), "at": i})
        )

    def reset(self, task: Task, seed: int) -> Box:
        if seed == 666:
            raise ConfigurationError("there is no sand here; bring some")
        if seed == 13:
            raise KeyError("thirteen")
        return Box(1 + derive_seed(task.info["seed"], seed) % self.config.most)

    def messages(self, task: Task, state: Box) -> Sequence[Message]:
        return [*task.messages, user(f"The goal is {state.goal}. Grüße \ud83d")]

    @tool(inline=True)
    def add(self, state: Box, number: Annotated[int, "What to add."]) -> str:
        """Add a number."""
        if number > state.goal:
            raise ToolError(f"{number} is more than {state.goal}")
        state.total += number
        thanks = ", thanks" if self.config.manner.thanks else ""
        return f"{'Fine' if self.config.mood == 'kind' else 'So'}{thanks}: {state.total}"

    @tool
    def slowly(self, state: Box, number: Annotated[int, "What to add."] = 1) -> Any:
        """Add a number, in a thread."""
        state.total += number
        return {"total": state.total, "ünits": None}

    @tool(timeout=0.2)
    async def patiently(self, state: Box, seconds: Annotated[float, "How long."] = 0.0) -> str:
        """Wait, on the loop."""
        await asyncio.sleep(seconds)
        state.total += 1
        return ""

    @tool
    def wrong(self, state: Box) -> str:
        """Fail as a bug does."""
        return str({}["nothing"])

    @tool
    def gone(self, state: Box) -> str:
        """Fail as what it stands on does."""
        raise InfrastructureError("the machine is gone")

    @tool
    def end_process(self, state: Box) -> str:
        """End the whole process."""
        os._exit(3)

    @tool(inline=True, timeout=0.3)
    def hold(self, state: Box) -> str:
        """Keep everything busy; nothing in Python can stop it."""
        return str(sum(range(10**12)))

    @tool(timeout=60)
    def rest(self, state: Box) -> str:
        """Take a while."""
        time.sleep(30)
        return ""

    def invalid_arguments(self, state: Box, tool: str, problem: str) -> str:
        state.refused += 1
        return f"{problem} ({state.refused})"

    def respond(self, state: Box, transcript: Transcript) -> Sequence[Message] | None:
        state.said.append(transcript.answer)
        return None if transcript.answer == "stop" else [user(f"{len(state.said)}: go on, {transcript.answer}")]

    def is_done(self, state: Box) -> bool:
        if state.total == -1:
            raise ValueError("below nothing")
        return state.total >= state.goal

    def game_outcome(self, state: Box) -> Any:
        return "win" if state.total == state.goal else None

    def conditions(self) -> Mapping[str, Any]:
        return {"sand": "dry"}

    @reward
    def exact(self, state: Box) -> bool:
        """1 for the goal."""
        return state.total == state.goal

    @reward(weight=0.5, low=-5)
    def refused(self, state: Box, calls: Sequence[CallRecord], task: Task) -> float:
        """Less for each call that failed."""
        assert task.info["at"] >= 0
        return -float(sum(call.is_error for call in calls)) if state.total != 5 else float("nan")

    @reward(weight=0)
    def talk(self, state: Box, transcript: Transcript) -> float | None:
        """1 if something was said last."""
        return float(bool(transcript.answer)) if state.goal != 2 else None

    def reference_policies(self) -> Mapping[str, Any]:
        return {"random": self._random}

    def _random(self, messages: Sequence[Message], random: Random) -> Message:
        number = random.randint(1, self.config.most)
        return assistant("hm", [tool_call(f"c{len(messages)}", "add", f'{{"number": {number}}}')])

    def teacher(self, skill: float) -> Any:
        return self._random if skill < 1 else None


class Other(Toy):
    """The same under another name."""

    name = "toy-other"
