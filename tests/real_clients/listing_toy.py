"""An environment whose one tool has every keyword that our schemas may have: what a client does to any shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from pydantic import Field

from mcpgym import Environment, Task, reward, task_id, tool
from mcpgym.messages import user


class Place(TypedDict):
    """An object within an object."""

    row: Annotated[int, Field(ge=0, le=2, description="The row.")]
    name: Annotated[str, "What it is called."]


class ListingToy(Environment[Task, None]):
    """Nobody plays it; it is only listed."""

    name = "listing-toy"
    description = "A tool with every keyword."

    def tasks(self, split: str) -> Sequence[Task]:
        return [Task(task_id(split, 0), split, [user("Nothing to do.")])]

    def reset(self, task: Task, seed: int) -> None:
        return None

    @tool
    def everything(
        self,
        state: None,
        count: Annotated[int, Field(ge=1, le=9, description="How many.")],
        ratio: Annotated[float, Field(ge=0.5, le=1.5, description="How much.")],
        word: Annotated[str, Field(min_length=2, max_length=8, description="A short word.")],
        places: Annotated[list[Place], Field(min_length=1, max_length=3, description="Where.")],
        colour: Annotated[Literal["red", "green"], "Which."],
        loud: Annotated[bool, "Whether to shout."] = False,
        limit: Annotated[int, "How far to look."] = 20,
        tags: Annotated[list[str], "Any words."] = [],  # noqa: B006
    ) -> str:
        """Do everything at once: ümlauts, "quotes" and a \\ reach the model as they are."""
        return "done"

    @reward
    def nothing(self, state: None) -> float:
        """Always 0."""
        return 0.0
