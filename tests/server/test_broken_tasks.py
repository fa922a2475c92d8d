"""An environment whose tasks are broken is told so in a sentence, wherever the tasks are asked for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from mcpgym import Environment, Task, reward
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym.errors import EpisodeError, UnknownNameError
from mcpgym.serving import serving


class Broken(Environment[Task, Any]):
    """``fault`` chooses what is wrong."""

    name = "broken"
    splits = ("train",)

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.fault = fault

    def tasks(self, split):
        match self.fault:
            case "raises":
                raise KeyError("the secret answer")
            case "refuses":
                raise ValueError("the secret answer")
            case "exits":
                raise SystemExit("the secret answer")
            case "rows":
                return [{"role": "user", "content": "a row of a dataset"}]
            case "none":
                return None
            case "message":
                return [Task("train-0", split, ["only text"])]
        return [Task(f"train-{i}", split, [{"role": "user", "content": "?"}]) for i in range(3)]

    def reset(self, task, seed):
        return None

    @reward
    def nothing(self) -> float:
        """Nothing."""
        return 0.0


FAULTS = {
    "raises": r"broken: tasks\('train'\) failed: KeyError.*mcpgym check",
    "refuses": r"broken: tasks\('train'\) failed: ValueError",
    "exits": r"broken: tasks\('train'\) failed: SystemExit",
    "rows": r"broken: tasks\('train'\) failed: TypeError: it has dict for a task, not mcpgym.Task",
    "none": r"broken: tasks\('train'\) failed: TypeError",
    "message": "broken could not begin task train-0: a message is str",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_opening_and_listing_say_what_is_wrong(fault: str) -> None:
    async def main() -> None:
        control = LocalControl(Episodes({"broken": Broken(fault)}))
        with pytest.raises(EpisodeError, match=FAULTS[fault]):
            await control.open("broken", split="train", index=0)
        if fault != "message":
            with pytest.raises(EpisodeError, match=FAULTS[fault]):
                await control.tasks("broken", "train")
        await control.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("fault", ["raises", "refuses", "exits"])
def test_players_do_not_read_what_it_raised(fault: str) -> None:
    async def main() -> None:
        episodes = Episodes({"broken": Broken(fault)})
        async with (
            serving(episodes, secret="a-secret-of-the-tests") as server,
            Client(f"{server.url}/broken/mcp") as client,
        ):
            for arguments in ({"task": "train-0"}, {}):
                started = await client.call_tool("start_episode", arguments)
                assert started.is_error
                assert started.content[0].text == "start_episode failed inside the environment; try another task"
            for resource in ("task/train-0", "tasks/train"):
                with pytest.raises(MCPError, match=r"^the environment could not say$"):
                    await client.read_resource(f"env://broken/{resource}")

    asyncio.run(main())


def test_an_unknown_task_is_told_which_there_are() -> None:
    with pytest.raises(UnknownNameError, match=r"no task 'x': there is: train-0 to train-2$"):
        Broken("").task("x")
    assert [task.id for task in Broken("").tasks_at("train", 1, 5)] == ["train-1", "train-2"]
