"""64 episodes at once never cross: every way to an episode, both protocol eras, against a plain model of its state."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from wire_toys import served, text_of, toy_episodes

from mcpgym.episodes import Episodes
from mcpgym.wire import player_app

EPISODES = 64
STEPS = 5
PLAYERS = {"2026-07-28": EPISODES, "auto": 16, "legacy": EPISODES}
"""``auto`` asks which era there is and then speaks the newer: what is its own happens while it connects."""
ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "auto", "legacy"])

CallTool = Callable[[str, dict[str, Any]], Awaitable[str]]
"""Calls one tool of one episode, however it is reached, and returns the text."""
Reach = Callable[[int], AbstractAsyncContextManager[CallTool]]
"""How player number N reaches its episode."""


class Model:
    """What a ledger is, in three lines: the reference that answers are compared with."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def add(self, word: str, times: int = 1) -> str:
        self.words += [word] * times
        return " ".join(self.words)


async def play_all(reach: Reach, players: int = EPISODES, steps: int = STEPS) -> int:
    """Let all players act at once, interleaved at random; how many answers were not their own episode's."""

    async def play(number: int) -> int:
        chance, model, crossed = random.Random(number), Model(), 0
        async with reach(number) as call:
            for step in range(steps):
                await asyncio.sleep(chance.random() * 0.02)
                word, kind = f"p{number}s{step}", chance.choice(["add", "add", "read", "slow", "thread"])
                match kind:
                    case "add":
                        times = chance.randint(0, 3)
                        got, want = await call("add", {"word": word, "times": times}), model.add(word, times)
                    case "read":
                        got, want = await call("read", {}), model.add(word, 0)
                    case _:
                        tool = "add_slowly" if kind == "slow" else "add_in_thread"
                        seconds = chance.random() * 0.01
                        got, want = await call(tool, {"word": word, "seconds": seconds}), model.add(word)
                crossed += got != want
        return crossed

    return sum(await asyncio.gather(*(play(number) for number in range(players))))


async def open_urls(episodes: Episodes, url: str, count: int) -> list[str]:
    opened = [await episodes.open("ledger", split="train", index=i) for i in range(count)]
    return [f"{url}/e/{episode.token}/mcp" for episode in opened]


def one_client(urls: list[str], mode: str) -> Reach:
    """A client for each player, for all its calls."""

    @asynccontextmanager
    async def reach(number: int) -> AsyncIterator[CallTool]:
        async with Client(urls[number % len(urls)], mode=mode) as client:

            async def call(tool: str, arguments: dict[str, Any]) -> str:
                return text_of(await client.call_tool(tool, arguments))

            yield call

    return reach


def a_client_per_call(urls: list[str], mode: str) -> Reach:
    """A new client, so a new connection and in the older era a new handshake, for every single call."""

    @asynccontextmanager
    async def reach(number: int) -> AsyncIterator[CallTool]:
        async def call(tool: str, arguments: dict[str, Any]) -> str:
            async with Client(urls[number % len(urls)], mode=mode) as client:
                return text_of(await client.call_tool(tool, arguments))

        yield call

    return reach


def handles(url: str, mode: str) -> Reach:
    """Everybody at one bare address, told apart by handles alone."""

    @asynccontextmanager
    async def reach(number: int) -> AsyncIterator[CallTool]:
        async with Client(url, mode=mode) as client:
            started = text_of(await client.call_tool("start_episode", {}))
            handle = started.split("\n")[0].removeprefix("episode: ")

            async def call(tool: str, arguments: dict[str, Any]) -> str:
                return text_of(await client.call_tool(tool, {"episode": handle, **arguments}))

            yield call

    return reach


@ERAS
@pytest.mark.parametrize("fast_lane", [True, False])
def test_case_1_and_6_episodes_by_url_never_cross_in_either_era(mode: str, fast_lane: bool) -> None:
    async def main() -> int:
        episodes = toy_episodes()
        async with served(player_app(episodes, fast_lane=fast_lane)) as url:
            return await play_all(one_client(await open_urls(episodes, url, EPISODES), mode), PLAYERS[mode])

    assert asyncio.run(main()) == 0


@ERAS
def test_case_4_a_client_that_connects_anew_for_every_call_keeps_its_state(mode: str) -> None:
    async def main() -> int:
        episodes = toy_episodes()
        async with served(player_app(episodes)) as url:
            urls = await open_urls(episodes, url, EPISODES)
            return await play_all(a_client_per_call(urls, mode), PLAYERS[mode], steps=2)

    assert asyncio.run(main()) == 0


@ERAS
def test_case_1_and_6_episodes_by_handle_at_one_bare_address_never_cross(mode: str) -> None:
    async def main() -> int:
        async with served(player_app(toy_episodes())) as url:
            return await play_all(handles(f"{url}/ledger/mcp", mode), PLAYERS[mode])

    assert asyncio.run(main()) == 0


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
@pytest.mark.parametrize("way", [one_client, a_client_per_call])
def test_these_tests_see_a_crossing_when_all_share_one_token(mode: str, way: Callable[..., Reach]) -> None:
    async def main() -> int:
        episodes = toy_episodes()
        async with served(player_app(episodes)) as url:
            return await play_all(way(await open_urls(episodes, url, 1), mode), players=10, steps=4)

    assert asyncio.run(main()) > 10


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_case_2_five_writers_of_one_episode_lose_no_update(mode: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        async with served(player_app(episodes)) as url:
            (shared,) = await open_urls(episodes, url, 1)

            async def write(number: int) -> list[str]:
                async with Client(shared, mode=mode) as client:
                    answers = []
                    for step in range(6):
                        tool = ["add_slowly", "add_in_thread", "add"][step % 3]
                        rest = {} if tool == "add" else {"seconds": 0.003}
                        answers.append(text_of(await client.call_tool(tool, {"word": f"w{number}.{step}", **rest})))
                    return answers

            answers = [answer for batch in await asyncio.gather(*map(write, range(5))) for answer in batch]
        words = next(iter(episodes._live.values())).state
        assert sorted(words) == sorted(f"w{number}.{step}" for number in range(5) for step in range(6))
        assert sorted(answers, key=len) == [" ".join(words[: n + 1]) for n in range(30)]

    asyncio.run(main())


@ERAS
def test_case_5_listing_calling_and_reconnecting_reach_the_same_episode(mode: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        async with served(player_app(episodes)) as url:
            one, two = await open_urls(episodes, url, 2)
            for word, seen in (("a", "a"), ("b", "a b")):
                async with Client(one, mode=mode) as client:
                    assert "add" in [tool.name for tool in (await client.list_tools()).tools]
                    assert text_of(await client.call_tool("add", {"word": word})) == seen
                    prompt = await client.get_prompt("task")
                    assert prompt.messages[-1].content.text == "Keep list 0 of train."  # type: ignore[union-attr]
            async with Client(two, mode=mode) as client:
                assert text_of(await client.call_tool("read", {})) == ""

    asyncio.run(main())
