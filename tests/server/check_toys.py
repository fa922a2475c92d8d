"""Small healthy environments for tests of the checker and of the contract."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from mcpgym import (
    Config,
    Environment,
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
class Room:
    """The state of a guessing game: doors, of which one hides a treasure."""

    treasure: int
    dice: Random
    opened: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    slips: int = 0


class DoorsConfig(Config):
    """How many doors there are."""

    doors: int = Field(default=9, ge=2, le=99)
    """Doors in a room."""


class Doors(Environment[Task, Room, DoorsConfig]):
    """A game with tools of every kind."""

    name = "doors"
    description = "Find the treasure behind one of the doors."
    instructions = "Call `open_door` with a number, or use `look` first."
    config_class = DoorsConfig

    @property
    def max_turns(self) -> int:
        return 30

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(40, lambda index: self.row(split, index))

    def row(self, split: str, index: int) -> Task:
        secret = derive_seed(split, index)
        prompt = (
            f"There are {self.config.doors} doors. Open them with `open_door(number)`; f(x) is no tool. Room {index}."
        )
        return Task(task_id(split, index), split, (user(prompt),), {"seed": secret, "difficulty": index % 3})

    def reset(self, task: Task, seed: int) -> Room:
        dice = Random(derive_seed(task.info["seed"], seed))
        return Room(dice.randrange(self.config.doors), dice)

    @tool(inline=True)
    def open_door(self, room: Room, number: Annotated[int, Field(description="Which door.", ge=0)]) -> str:
        """Open one door."""
        if number >= self.config.doors:
            raise ToolError(f"there is no door {number}; there are 0 to {self.config.doors - 1}")
        if number in room.opened:
            raise ToolError(f"door {number} is open; open are {room.opened}")
        room.opened.append(number)
        return "the treasure!" if number == room.treasure else f"empty; a mouse says {room.dice.randrange(1000)}"

    @tool
    def look(self, room: Room, where: Annotated[Literal["left", "right"], "Which side."] = "left") -> str:
        """Look around."""
        return f"open on the {where}: {room.opened}"

    @tool
    async def note(
        self,
        room: Room,
        text: Annotated[str, "What to remember."],
        pages: Annotated[list[int], "Page numbers."] = [],  # noqa: B006 - every call gets a copy of its own
    ) -> str:
        """Write a note."""
        await asyncio.sleep(0)
        room.notes.append(text[:100])
        return f"{len(room.notes)} notes, {len(pages)} pages"

    def is_done(self, room: Room) -> bool:
        return room.treasure in room.opened

    def invalid_arguments(self, state: Room, tool: str, problem: str) -> str:
        state.slips += 1
        return problem

    @reward
    def found(self, room: Room) -> float:
        return 1.0 if room.treasure in room.opened else 0.0

    @reward(weight=0.5, low=-1, high=0)
    def slips(self, room: Room) -> float:
        return -min(room.slips, 10) / 10

    @reward(weight=0.1)
    async def polite(self, transcript: Transcript) -> float | None:
        await asyncio.sleep(0)
        return float("please" in transcript.answer) if transcript.assistant_turns else None

    def reference_policies(self):
        return {"random": _open_any}


def _open_any(messages: Sequence[Message], random: Random) -> Message:
    arguments = json.dumps({"number": random.randrange(9)})
    return assistant("", [tool_call(f"c{len(messages)}", "open_door", arguments)])


class Sums(Environment[Task, int]):
    """A single turn, no tools."""

    name = "sums"

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(1000, lambda index: self.row(split, index))

    def row(self, split: str, index: int) -> Task:
        random = Random(derive_seed(split, index))
        one, other = random.randrange(10**6), random.randrange(10**6)
        return Task(
            task_id(split, index),
            split,
            (user(f"What is {one} + {other}? Write a function `add(a, b)` first."),),
            {"answer": one + other},
        )

    def reset(self, task: Task, seed: int) -> int:
        return int(task.info["answer"])

    @reward
    def right(self, answer: int, transcript: Transcript) -> float:
        return float(str(answer) in transcript.answer)


class Chat(Environment[Task, list[str]]):
    """Several turns: the environment answers as the user, asynchronously."""

    name = "chat"
    splits = ("all",)

    def tasks(self, split: str) -> Sequence[Task]:
        return [Task(f"topic-{topic}", split, (user(f"Tell me about {topic}."),)) for topic in ("tea", "rain", "Oslo")]

    async def reset(self, task: Task, seed: int) -> list[str]:
        await asyncio.sleep(0)
        return []

    async def respond(self, state: list[str], transcript: Transcript) -> list[Message] | None:
        state.append(transcript.answer)
        return [user("Are you sure?")] if len(state) < 3 else None

    @reward
    def patience(self, state: list[str]) -> float:
        return len(state) / 3

    async def close(self, state: list[str]) -> None:
        state.clear()


class Line(TypedDict):
    """One line of an order."""

    item: Annotated[str, Field(description="What.", min_length=1, max_length=20)]
    count: Annotated[int, Field(description="How many.", ge=1, le=9)]


class Shop(Environment[Task, list[Line]]):
    """Nested arguments."""

    name = "shop"

    def tasks(self, split: str) -> Sequence[Task]:
        return [Task(task_id(split, i), split, (user(f"Order for guest {split} {i}."),)) for i in range(2)]

    def reset(self, task: Task, seed: int) -> list[Line]:
        return []

    @tool
    def order(
        self,
        basket: list[Line],
        lines: Annotated[list[Line], Field(description="What to order.", min_length=1, max_length=5)],
        rush: Annotated[bool, "Whether it is urgent."] = False,
        price: Annotated[float, Field(description="The most to pay.", ge=0)] = 0.0,
    ) -> str:
        """Order things."""
        basket += lines
        return f"{sum(line['count'] for line in basket)} things{' at once' if rush else ''} below {price:g}"

    @reward
    def ordered(self, basket: list[Line]) -> float:
        return float(bool(basket))


HEALTHY = (Doors, Sums, Chat, Shop)
