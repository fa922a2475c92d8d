"""An environment that exits, cancels itself or hangs fails alone: the server and the other episodes go on."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from mcpgym import Config, Environment, Task, reward, tool
from mcpgym import episodes as module
from mcpgym.check import check_environment
from mcpgym.control import Call, LocalControl
from mcpgym.control_client import HttpControl
from mcpgym.episodes import Episodes, Limits
from mcpgym.errors import CannotBegin, ConfigurationError, EpisodeError, RewardError
from mcpgym.messages import user
from mcpgym.serving import serving
from mcpgym.wire.bare import BarePlayer, Handles

SECRET = "a-secret-of-the-tests"


class WildConfig(Config):
    where: str = ""
    """The method that misbehaves."""
    how: str = "exit"
    """What it does then."""


class Wild(Environment[Task, dict[str, int], WildConfig]):
    name = "wild"
    config_class = WildConfig

    def tasks(self, split):
        return [Task(f"{split}-0", split, (user("go"),))]

    def misbehave(self, where):
        if where == self.config.where:
            raise {"exit": SystemExit(3), "cancel": asyncio.CancelledError("no")}[self.config.how]

    async def reset(self, task, seed):
        self.misbehave("reset")
        if self.config.where == "hang":
            await asyncio.sleep(3600)
        return {}

    def messages(self, task, state):
        self.misbehave("messages")
        return task.messages

    def is_done(self, state):
        self.misbehave("is_done")
        return False

    def respond(self, state, transcript):
        self.misbehave("respond")
        return [user("more")]

    def invalid_arguments(self, state, tool, problem):
        self.misbehave("invalid_arguments")
        return problem

    def close(self, state):
        self.misbehave("close")

    @tool(inline=True)
    def poke(self, state: dict[str, int]) -> str:
        """Poke."""
        self.misbehave("poke")
        return "poked"

    @tool
    async def wait(self, state: dict[str, int]) -> str:
        """Wait."""
        self.misbehave("wait")
        return "waited"

    @reward
    async def mood(self, state) -> float:
        self.misbehave("mood")
        return 1.0

    def game_outcome(self, state):
        self.misbehave("game_outcome")


async def play(control: LocalControl, config: dict[str, Any]) -> None:
    """One episode, through every method an environment has."""
    opened = await control.open("wild", split="test", config=config)
    await control.step([Call(opened.token, name, arguments) for name, arguments in EVERY_CALL])
    try:
        await control.respond(opened.token, [])
        await control.score(opened.token)
    finally:
        await control.close(opened.token)


EVERY_CALL: list[tuple[str, dict[str, Any]]] = [("poke", {}), ("poke", {"odd": 1}), ("wait", {})]


MAY_AWAIT = ("reset", "poke", "wait", "respond", "mood", "close")
CANNOT_AWAIT = ("messages", "is_done", "invalid_arguments", "game_outcome")
WAYS = [(where, "exit") for where in MAY_AWAIT + CANNOT_AWAIT] + [(where, "cancel") for where in MAY_AWAIT]


@pytest.mark.parametrize(("where", "how"), WAYS)
def test_case_8_an_environment_that_exits_takes_nothing_with_it(where: str, how: str) -> None:
    async def main() -> None:
        control = LocalControl(Episodes({"wild": Wild()}))
        try:
            await play(control, {"where": where, "how": how})
        except (EpisodeError, RewardError) as error:
            assert str(error)  # noqa: PT017
        else:
            assert where == "close", "the failure shows in the score, unless the score was there before"
        assert len(control.episodes) == 0
        await play(control, {})
        await control.aclose()

    asyncio.run(main())


def test_case_12_a_reset_that_hangs_ends_at_its_limit_and_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RESET_SECONDS", 0.05)

    async def main() -> None:
        episodes = Episodes({"wild": Wild()}, Limits(live=1))
        for _ in range(3):
            with pytest.raises(EpisodeError, match=r"could not begin task test-0: reset took over 0.05 s"):
                await episodes.open("wild", split="test", config={"where": "hang"})
        await episodes.open("wild", split="test")

    asyncio.run(main())


def test_case_7_ended_episodes_keep_no_instance_of_their_configuration_alive() -> None:
    async def main() -> None:
        episodes = Episodes({"wild": Wild()})
        made = []
        for number in range(module.MAX_CONFIGURATIONS + 20):
            episode = await episodes.open("wild", split="test", config={"how": str(number)})
            made.append(weakref.ref(episode.environment))
            await episodes.close(episode.token)
            del episode
        await episodes.expire()
        gc.collect()
        assert sum(one() is not None for one in made) == module.MAX_CONFIGURATIONS

    asyncio.run(main())


def test_case_8_a_harness_that_leaves_while_an_episode_begins_leaves_nothing_behind() -> None:
    async def main() -> None:
        episodes = Episodes({"wild": Wild()}, Limits(live=1))
        async with serving(episodes, secret=SECRET) as server, HttpControl(server.control_url, SECRET) as control:
            hung = asyncio.ensure_future(control.open("wild", split="test", config={"where": "hang"}))
            while not episodes._opening:
                await asyncio.sleep(0.01)
            hung.cancel()
            await asyncio.wait([hung])
            async with asyncio.timeout(10):
                while episodes._opening:
                    await asyncio.sleep(0.01)
            assert (await control.open("wild", split="test")).token

    asyncio.run(main())


class Unfit(Wild):
    """What it stands on is not installed."""

    name = "unfit"

    async def reset(self, task, seed):
        raise ConfigurationError("there is no engine in /opt/secret. Install one.")


def test_what_cannot_run_here_says_so_to_its_user_and_not_to_a_player() -> None:
    async def main() -> None:
        environment = Unfit()
        episodes = Episodes({"unfit": environment})
        with pytest.raises(CannotBegin, match=r"^unfit cannot run here: there is no engine in /opt/secret\. Install"):
            await episodes.open("unfit", split="test")
        player = BarePlayer(episodes, Handles(episodes), ["unfit"])
        result = await player.call("start_episode", {}, None)
        assert result.is_error
        assert "unfit is not set up to run here" in result.text
        assert "secret" not in result.text

    asyncio.run(main())


def test_check_takes_what_cannot_run_here_for_no_fault_of_the_environments() -> None:
    with pytest.raises(CannotBegin, match="Install one"):
        check_environment(Unfit())
