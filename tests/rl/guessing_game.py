"""A test environment that a model can learn in seconds: say the number that pays, which nothing tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Annotated, Any

from mcpgym import Environment, ReferencePolicy, Task, ToolError, reward, tool
from mcpgym.messages import Message, assistant, system, tool_call, user

PAYS = 2


class Guess(Environment[Task, dict[str, Any]]):
    """One call, one number, 0 to 3; only one of them pays."""

    name = "guess"
    splits = ("train",)

    def tasks(self, split: str) -> Sequence[Task]:
        return [Task(f"train-{i}", split, [system("Say a number."), user(f"Game {i}.")], {}) for i in range(8)]

    def reset(self, task: Task, seed: int) -> dict[str, Any]:
        return {"said": None}

    @tool(inline=True)
    def say(self, state: dict[str, Any], number: Annotated[int, "The number, 0 to 3."]) -> str:
        """Say a number."""
        if not 0 <= number <= 3:
            raise ToolError("0 to 3")
        state["said"] = number
        return f"You said {number}."

    def is_done(self, state: dict[str, Any]) -> bool:
        return state["said"] is not None

    @reward(weight=1.0)
    def paid(self, state: dict[str, Any]) -> float:
        return float(state["said"] == PAYS)

    def teacher(self, skill: float) -> ReferencePolicy:
        def act(messages: Sequence[Message], random: Random) -> Message:
            return assistant("", [tool_call("call_0", "say", f'{{"number": {random.randrange(4)}}}')])

        return act

    def reference_policies(self) -> Mapping[str, ReferencePolicy]:
        return {}


class Told(Guess):
    """The same with a teacher who knows: after it there is nothing left to learn."""

    name = "told"

    def teacher(self, skill: float) -> ReferencePolicy:
        return lambda messages, random: assistant("", [tool_call("call_0", "say", f'{{"number": {PAYS}}}')])
