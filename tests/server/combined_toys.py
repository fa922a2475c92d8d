"""Small environments to be put together, and what the tests of combinations share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Any

from pydantic import Field

from mcpgym import (
    CallRecord,
    Config,
    Environment,
    InfrastructureError,
    LazyTasks,
    Message,
    ReferencePolicy,
    Task,
    ToolError,
    Transcript,
    derive_seed,
    reward,
    task_id,
    tool,
)
from mcpgym.messages import assistant, system, tool_call, user


class CountingConfig(Config):
    goal: int = Field(default=10, ge=1)
    """Where it ends."""
    most: int = Field(default=6, ge=1)
    """Turns."""
    broken: str = ""
    """What breaks: reset, close, shutdown, reward, tool or nothing."""
    tasks_count: int = Field(default=5, ge=0)
    """Tasks of a split."""


@dataclass
class Count:
    total: int
    wrong: int = 0
    seed: int = 0
    closed: bool = False


class Counting(Environment[Task, Count, CountingConfig]):
    """Counts to a goal by tools of every kind; remembers every state that it released."""

    name = "counting"
    description = "Count to ten."
    instructions = "Call add to count; `add_later` takes a moment."
    config_class = CountingConfig
    released: list[Count] = []
    shut: list[str] = []

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(
            self.config.tasks_count,
            lambda i: Task(task_id(split, i), split, (), {"seed": derive_seed("counting", split, i)}),
        )

    def reset(self, task: Task, seed: int) -> Count:
        if self.config.broken == "reset":
            raise InfrastructureError("nothing to count with")
        key = derive_seed(task.info["seed"], seed)
        return Count(Random(key).randrange(5), seed=key)

    def messages(self, task: Task, state: Count) -> Sequence[Message]:
        return [system("Use add, or `add_later(count)`."), user(f"## counting\nCount on from {state.total}.")]

    def _add(self, state: Count, count: int) -> str:
        if self.config.broken == "tool":
            raise InfrastructureError("the abacus broke")
        if count < 0:
            raise ToolError(f"{count} is below 0")
        state.total += count
        return f"{state.total} {derive_seed(state.seed, state.total) % 1000}"

    @tool(inline=True)
    def add(self, state: Count, count: Annotated[int, "How many."]) -> str:
        """Add at once."""
        return self._add(state, count)

    @tool
    async def add_later(self, state: Count, count: Annotated[int, "How many."]) -> str:
        """Add after a moment."""
        await asyncio.sleep(0)
        return self._add(state, count)

    @tool
    def add_beside(self, state: Count, count: Annotated[int, "How many."]) -> str:
        """Add in a thread."""
        return self._add(state, count)

    def invalid_arguments(self, state: Count, tool: str, problem: str) -> str:
        state.wrong += 1
        return f"{tool}, wrong {state.wrong}: {problem}"

    def is_done(self, state: Count) -> bool:
        return state.total >= self.config.goal

    @property
    def max_turns(self) -> int:
        return self.config.most

    @reward
    def reached(self, state: Count) -> float | None:
        """Whether it got there; unknown where that is configured."""
        return None if self.config.broken == "reward" else float(state.total >= self.config.goal)

    @reward(weight=0.5, low=-1, high=0)
    def mistakes(self, state: Count) -> float:
        """How often arguments were wrong."""
        return -min(state.wrong / 6, 1.0)

    @reward(weight=0)
    def used(self, calls: Sequence[CallRecord], task: Task) -> float:
        """The share of its turns that were calls: above 1 is an error. And it knows its task."""
        assert all(record.name in self.tools for record in calls)
        assert "\n(" not in "".join(record.text for record in calls)
        return len(calls) / self.config.most if task.info["seed"] else 0.0

    @reward(weight=0.25)
    def said(self, transcript: Transcript) -> float:
        """A fingerprint of all that was said."""
        return derive_seed(str([dict(message) for message in transcript])) % 1000 / 1000

    async def close(self, state: Count) -> None:
        self.released.append(state)
        state.closed = True
        if self.config.broken == "close":
            raise RuntimeError("the abacus is stuck")

    def shutdown(self) -> None:
        self.shut.append(self.config.broken)
        if self.config.broken == "shutdown":
            raise RuntimeError("the shop does not close")

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        return {"expert": _count_by_three, "random": _count_by_three}

    def teacher(self, skill: float) -> ReferencePolicy | None:
        return _count_by_three


def _count_by_three(messages: Sequence[Message], random: Random) -> Message:
    return assistant("On.", [tool_call("call_0", "add", '{"count": 3}')])


@dataclass
class Questions:
    secret: str
    asked: int = 0
    heard: list[str] = field(default_factory=list)


class Asking(Environment[Task, Questions]):
    """Two questions in words, no tools."""

    name = "asking"
    description = "Say the word, twice."

    def tasks(self, split: str) -> Sequence[Task]:
        word = f"answer-{split}"
        return [
            Task(task_id(split, i), split, [user(f"Which word, {i}?")], {"answer": f"{word}-{i}"}) for i in range(7)
        ]

    def reset(self, task: Task, seed: int) -> Questions:
        return Questions(f"{task.info['answer']} {seed}")

    async def respond(self, state: Questions, transcript: Transcript) -> Sequence[Message] | None:
        state.asked += 1
        state.heard.append(transcript.answer)
        return [user(f"Again, {len(transcript)}?"), user("## asking")] if state.asked < 3 else None

    @reward
    def heard(self, state: Questions, transcript: Transcript) -> float:
        """A fingerprint of what was heard and said."""
        return derive_seed(str([state.heard, [dict(message) for message in transcript]])) % 1000 / 1000

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        return {"expert": _say, "random": _say}

    def teacher(self, skill: float) -> ReferencePolicy | None:
        return _say


def _say(messages: Sequence[Message], random: Random) -> Message:
    return assistant(f"the word after {len(messages)}")


def members() -> dict[str, Any]:
    """Classes to choose from."""
    from mcpgym import registry

    return {
        "counting": Counting,
        "asking": Asking,
        **{name: registry.environment_class(name) for name in ("tic-tac-toe", "reverse-text", "double-check")},
    }
