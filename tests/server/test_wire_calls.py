"""Calls of one episode under trouble: tools that will not stop, that exit, arguments without end, floods of calls."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from wire_toys import toy_episodes

from mcpgym import Config, Environment, LazyTasks, Task, task_id, tool
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes


class Trouble(Environment[Task, list[str], Config]):
    """Tools that do what tools should not."""

    name = "trouble"

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        self.gate = threading.Event()

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(1, lambda i: Task(task_id(split, i), split, ({"role": "user", "content": "Go."},)))

    def reset(self, task: Task, seed: int) -> list[str]:
        return []

    @tool(inline=True)
    def quick(self, state: list[str]) -> str:
        """Answer at once."""
        state.append("quick")
        return " ".join(state)

    @tool(timeout=0.2)
    def stuck(self, state: list[str]) -> str:
        """Wait in a thread for the gate."""
        self.gate.wait(20)
        state.append("stuck")
        return "late"

    @tool(timeout=0.2)
    async def deaf(self, state: list[str]) -> str:
        """Do not stop when told to."""
        for _ in range(5):
            try:
                await asyncio.sleep(0.2)
            except asyncio.CancelledError:
                state.append("told")
        state.append("deaf")
        return "late"

    @tool
    async def slow(self, state: list[str], seconds: Annotated[float, "s"]) -> str:
        """Take a while."""
        state.append("running")
        try:
            await asyncio.sleep(seconds)
        finally:
            await asyncio.sleep(0.05)
            state.remove("running")
        state.append("slow")
        return " ".join(state)

    @tool
    async def times_out_itself(self, state: list[str]) -> str:
        """Raise the error of another deadline."""
        raise TimeoutError("a database of its own")

    @tool(inline=True)
    def leaves(self, state: list[str]) -> str:
        """Call sys.exit."""
        sys.exit(3)

    @tool
    def leaves_in_thread(self, state: list[str]) -> str:
        """Call sys.exit in a thread."""
        sys.exit(3)

    @tool
    async def leaves_on_loop(self, state: list[str]) -> str:
        """Call sys.exit in a coroutine."""
        sys.exit(3)

    @tool(inline=True)
    def unsayable(self, state: list[str]) -> Any:
        """Return what is no text and no JSON."""
        return object()


async def trouble() -> tuple[Episodes, Episode, Trouble]:
    environment = Trouble()
    episodes = Episodes({"trouble": environment})
    return episodes, await episodes.open("trouble", split="train", index=0), environment


def play(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main(), 20))


def test_equal_calls_in_flight_run_once_and_calls_with_other_keys_run_on_their_own() -> None:
    async def main() -> None:
        _, episode, _ = await trouble()

        async def call(key: str | None) -> str:
            return (await episode.call("slow", {"seconds": 0.05}, key)).text

        assert await asyncio.gather(call(None), call(None), call("a"), call("a")) == ["slow"] * 4
        assert await call("a") == "slow"  # remembered, though the call began without the key
        assert await asyncio.gather(call("b"), call("c")) == ["slow slow", "slow slow slow"]

    play(main)


@pytest.mark.flaky(reruns=1)  # it measures time
@pytest.mark.parametrize("name", ["stuck", "deaf"])
def test_case_12_a_tool_that_will_not_stop_is_left_and_nothing_runs_beside_it(name: str) -> None:
    async def main() -> None:
        _, episode, environment = await trouble()
        began = time.monotonic()
        late = await episode.call(name, {})
        assert time.monotonic() - began < 1.0
        assert "did not finish within 0.2 s" in late.text
        asyncio.get_running_loop().call_later(0.3, environment.gate.set)
        answer = await episode.call("quick", {})
        before = ["stuck"] if name == "stuck" else ["told", "deaf"]
        assert answer.text == " ".join([*before, "quick"])

    play(main)


def test_case_12_while_a_thread_is_stuck_other_calls_read_an_error_within_their_own_limit() -> None:
    async def main() -> None:
        _, episode, environment = await trouble()
        await episode.call("stuck", {})
        answer = await episode.call("deaf", {})
        assert answer.is_error
        assert answer.text.startswith("an earlier call is still running")
        assert episode.state == []
        environment.gate.set()

    play(main)


def test_a_tool_that_raises_timeout_itself_is_a_bug_of_the_environment_and_no_deadline() -> None:
    async def main() -> None:
        _, episode, _ = await trouble()
        answer = await episode.call("times_out_itself", {})
        assert answer.text == "times_out_itself failed inside the environment"
        assert episode.failure is not None
        assert "a database of its own" in episode.failure

    play(main)


@pytest.mark.parametrize("name", ["leaves", "leaves_in_thread", "leaves_on_loop", "unsayable"])
def test_a_tool_that_exits_or_answers_nonsense_harms_only_its_own_episode(name: str) -> None:
    async def main() -> None:
        _, episode, _ = await trouble()
        assert (await episode.call(name, {})).text == f"{name} failed inside the environment"
        assert (await episode.call("quick", {})).text == "quick"

    play(main)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("name", ["quick", "slow", "nope"])
@pytest.mark.parametrize("levels", [70, 900, 100_000])
def test_arguments_of_any_depth_are_answered_and_leave_a_log_that_can_be_written(
    name: str, levels: int, key: str | None
) -> None:
    async def main() -> None:
        _, episode, _ = await trouble()
        assert (await episode.call(name, {"seconds": nested(levels)}, key)).is_error
        json.dumps([[call.arguments, call.text] for call in episode.calls])

    play(main)


def test_more_calls_at_once_than_an_episode_may_hold_are_refused_and_the_rest_answered() -> None:
    async def main() -> None:
        episodes = toy_episodes()
        episode = await episodes.open("ledger", split="train", index=0)
        calls = [episode.call("add_slowly", {"word": str(i), "seconds": 0.0}) for i in range(300)]
        answers = await asyncio.gather(*calls)
        assert [answer.is_error for answer in answers] == [False] * 256 + [True] * 44
        assert episode.state == [str(i) for i in range(256)]

    play(main)


def test_a_caller_that_waits_for_a_free_thread_and_leaves_blocks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgym.episodes.MAX_TOOL_THREADS", 1)

    async def main() -> None:
        environment = Trouble()
        episodes = Episodes({"trouble": environment})
        one, two = [await episodes.open("trouble", split="train", index=0) for _ in range(2)]
        holding = asyncio.ensure_future(one.call("stuck", {}))
        await asyncio.sleep(0.05)
        leaving = asyncio.ensure_future(two.call("stuck", {}))
        await asyncio.sleep(0.05)
        leaving.cancel()
        await asyncio.wait([leaving])
        assert (await two.call("quick", {})).text == "quick"
        environment.gate.set()
        await holding
        assert (await two.call("stuck", {})).text == "late"

    play(main)
