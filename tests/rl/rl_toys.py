"""Small environments that the tests of rollouts play."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Annotated, Any

from mcpgym import Config, Environment, LazyTasks, Message, Task, ToolError, Transcript, reward, task_id, tool
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes, Limits
from mcpgym.messages import assistant, tool_call, user


class CounterConfig(Config):
    goal: int = 3
    """Where the episode ends."""


class Counter(Environment[Task, dict[str, Any], CounterConfig]):
    """Count up to the goal; the state keeps a log of all that reached it."""

    name = "counter"
    version = "7"
    config_class = CounterConfig
    closed: list[str] = []

    def tasks(self, split: str) -> LazyTasks:
        return LazyTasks(
            50, lambda i: Task(task_id(split, i), split, (user(f"Count to the goal. Task {i}."),), {"i": i})
        )

    def reset(self, task: Task, seed: int) -> dict[str, Any]:
        return {"count": 0, "seed": seed, "task": task.id, "random": Random(seed)}

    @tool(inline=True)
    def add(self, state: dict[str, Any], amount: Annotated[int, "How much."]) -> str:
        """Add to the count."""
        if amount < 0:
            raise ToolError("amount must not be negative")
        state["count"] += amount
        return f"count {state['count']}"

    @tool
    async def wait(self, state: dict[str, Any], seconds: Annotated[float, "How long."] = 0.0) -> str:
        """Wait a while."""
        await asyncio.sleep(seconds)
        return "waited"

    @tool(inline=True)
    def peek(self, state: dict[str, Any]) -> str:
        """Look at the count and draw a number."""
        return f"count {state['count']}, drawn {state['random'].randrange(1000)}"

    @tool(inline=True)
    def explode(self, state: dict[str, Any]) -> str:
        """Break the environment."""
        raise KeyError("a bug of the environment")

    def is_done(self, state: dict[str, Any]) -> bool:
        return bool(state["count"] >= self.config.goal)

    @property
    def max_turns(self) -> int | None:
        return 12

    @reward
    def reached(self, state: dict[str, Any]) -> float:
        """Whether the goal was reached."""
        return float(self.is_done(state))

    @reward(weight=0.5)
    def spoke(self, transcript: Transcript) -> float:
        """Whether the policy said anything."""
        return float(any(turn["content"] for turn in transcript.assistant_turns))

    def reference_policies(self) -> dict[str, Any]:
        def expert(messages: Sequence[Message], random: Random) -> Message:
            return assistant("", [tool_call("c", "add", '{"amount": 1}')])

        async def drawn(messages: Sequence[Message], random: Random) -> Message:
            return assistant("", [tool_call("c", "add", f'{{"amount": {random.randint(0, 2)}}}')])

        return {"expert": expert, "random": drawn}

    def close(self, state: dict[str, Any]) -> None:
        self.closed.append(state["task"])


class Chat(Environment[Task, list[str]]):
    """No tools: the user asks twice, and the second answer should be ``yes``."""

    name = "chat"

    def tasks(self, split: str) -> LazyTasks:
        return LazyTasks(5, lambda i: Task(task_id(split, i), split, (user("Well?"),)))

    def reset(self, task: Task, seed: int) -> list[str]:
        return []

    def respond(self, state: list[str], transcript: Transcript) -> Sequence[Message] | None:
        state.append(transcript.answer)
        return [user("Are you sure?")] if len(state) == 1 else None

    @reward
    def agreed(self, transcript: Transcript) -> float:
        """Whether it said yes in the end."""
        return float(transcript.answer == "yes")


class BrokenReward(Chat):
    """Its reward fails."""

    name = "broken-reward"

    @reward
    def agreed(self, transcript: Transcript) -> float:
        """Fails."""
        raise ZeroDivisionError("no")


class BrokenReset(Chat):
    """It cannot begin."""

    name = "broken-reset"

    def reset(self, task: Task, seed: int) -> list[str]:
        raise RuntimeError("the board is missing")


def episodes(limits: Limits | None = None) -> Episodes:
    """Fresh instances of all of them."""
    made: list[Environment[Any, Any, Any]] = [Counter(), Chat(), BrokenReward(), BrokenReset()]
    return Episodes({environment.name: environment for environment in made}, limits)


def control(limits: Limits | None = None) -> LocalControl:
    """A control plane over them, in process."""
    return LocalControl(episodes(limits))
