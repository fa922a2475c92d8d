"""Episode URLs in trouble: clients that leave, retry, are killed, or come all at once."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from typing import Any

import aiohttp
import pytest
from mcp import Client
from wire_toys import (
    HOST_HEADERS as HOST,
)
from wire_toys import (
    ask,
    legacy_call,
    modern_call,
    raw_headers,
    served,
    served_in_thread,
    text_of,
    toy_episodes,
)

from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.wire import player_app

CALLS = {"modern": modern_call, "legacy": legacy_call}
LANES = pytest.mark.parametrize(("era", "fast_lane"), [("modern", True), ("modern", False), ("legacy", True)])


async def opened(episodes: Episodes) -> Episode:
    return await episodes.open("ledger", split="train", index=0)


@pytest.mark.flaky(reruns=1)  # it measures time
@LANES
def test_a_call_whose_client_goes_away_is_cancelled_and_changes_nothing(era: str, fast_lane: bool) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        async with served(player_app(episodes, fast_lane=fast_lane)) as url:
            episode = await opened(episodes)
            address = f"{url}/e/{episode.token}/mcp"
            headers, body = CALLS[era]("add_slowly", {"word": "ghost", "seconds": 3.0})
            async with aiohttp.ClientSession() as http:
                with pytest.raises(asyncio.TimeoutError):
                    await http.post(address, headers=headers, json=body, timeout=aiohttp.ClientTimeout(total=0.3))
            began = time.monotonic()
            while episode.busy:
                await asyncio.sleep(0.01)
                assert time.monotonic() - began < 1.0
            assert episode.state == []
            assert "its caller went away" in episode.calls[-1].text
            async with Client(address) as client:
                assert text_of(await client.call_tool("add", {"word": "next"})) == "next"

    asyncio.run(main())


@LANES
def test_a_retry_of_a_call_that_runs_in_a_thread_gets_its_answer_and_it_runs_once(era: str, fast_lane: bool) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        async with served(player_app(episodes, fast_lane=fast_lane)) as url:
            episode = await opened(episodes)
            address = f"{url}/e/{episode.token}/mcp"
            headers, body = CALLS[era]("add_in_thread", {"word": "once", "seconds": 0.8})
            async with aiohttp.ClientSession() as http:
                with pytest.raises(asyncio.TimeoutError):
                    await http.post(address, headers=headers, json=body, timeout=aiohttp.ClientTimeout(total=0.2))
                async with http.post(address, headers=headers, json=body) as answer:
                    assert '"text":"once"' in (await answer.text()).replace(": ", ":")
            assert episode.state == ["once"]
            assert len(episode.calls) == 1

    asyncio.run(main())


@LANES
@pytest.mark.parametrize("where", ["mcpgym/idempotencyKey", "claudecode/toolUseId", "header"])
def test_a_call_that_repeats_its_key_runs_once(era: str, fast_lane: bool, where: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        app = player_app(episodes, fast_lane=fast_lane)
        episode = await opened(episodes)

        async def call(word: str, key: str) -> Any:
            headers, body = CALLS[era]("add", {"word": word})
            if where == "header":
                headers["idempotency-key"] = key
            else:
                body["params"].setdefault("_meta", {})[where] = key
            sent = raw_headers({**HOST, **headers}), json.dumps(body).encode()
            _, _, answer = await ask(app, f"/e/{episode.token}/mcp", *sent)
            result = json.loads(answer)["result"]
            return result["content"][0]["text"], result["isError"]

        async with app.running():
            assert await call("a", "one") == ("a", False)
            assert await call("a", "one") == ("a", False)
            assert await call("a", "two") == ("a a", False)
            assert await call("b", "one") == ("this idempotency key belongs to another call; use a new one", True)
            assert await call("a", "k" * 10_000) == ("a a a", False)
            assert await call("a", "k" * 10_000) == ("a a a", False)
        assert episode.state == ["a"] * 3
        assert max(len(key) for key in episode._twins._answers) <= 128

    asyncio.run(main())


CLIENT = """
import asyncio, sys
from mcp import Client

async def main():
    async with Client(sys.argv[1], mode=sys.argv[2]) as client:
        print("connected", flush=True)
        await client.call_tool(sys.argv[3], {"word": "ghost", "seconds": 4.0})

asyncio.run(main())
"""


@pytest.mark.flaky(reruns=1)  # it measures time
@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
@pytest.mark.parametrize("tool", ["add_slowly", "add_in_thread"])
def test_case_8_a_client_killed_in_mid_call_leaves_the_server_and_the_episode_usable(mode: str, tool: str) -> None:
    episodes = toy_episodes()
    episode = asyncio.run(opened(episodes))
    with served_in_thread(episodes) as url:
        address = f"{url}/e/{episode.token}/mcp"
        command = [sys.executable, "-c", CLIENT, address, mode, tool]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
            assert client.stdout is not None
            assert client.stdout.readline() == b"connected\n"
            deadline = time.monotonic() + 10
            while not episode.busy:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            client.send_signal(signal.SIGKILL)
            client.wait(timeout=10)

        async def play_on() -> str:
            async with Client(address, mode=mode) as other:
                return text_of(await other.call_tool("add", {"word": "next"}))

        began = time.monotonic()
        assert asyncio.run(play_on()) == ("next" if tool == "add_slowly" else "ghost next")
        assert time.monotonic() - began < (2.0 if tool == "add_slowly" else 6.0)


@pytest.mark.parametrize("era", CALLS)
def test_case_9_a_burst_of_256_episodes_drops_no_connection(era: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        with served_in_thread(episodes) as url:
            addresses = [f"{url}/e/{(await opened(episodes)).token}/mcp" for _ in range(256)]
            limit = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=limit) as http:

                async def play(number: int) -> list[Any]:
                    answers = []
                    for word in ("a", "b"):
                        headers, body = CALLS[era]("add", {"word": f"{word}{number}"})
                        async with http.post(addresses[number], headers=headers, json=body) as answer:
                            assert answer.status == 200
                            answers.append((await answer.json())["result"]["content"][0]["text"])
                    return answers

                answers = await asyncio.gather(*map(play, range(256)))
        assert answers == [[f"a{number}", f"a{number} b{number}"] for number in range(256)]

    asyncio.run(main())


def test_the_official_clients_calls_take_the_fast_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        app = player_app(episodes)
        episode = await opened(episodes)
        through_sdk: list[str] = []
        handle = app._hosting.handle

        async def counted(face: Any, scope: Any, receive: Any, send: Any) -> None:
            through_sdk.append(dict(scope["headers"])[b"mcp-method"].decode())
            await handle(face, scope, receive, send)

        monkeypatch.setattr(app._hosting, "handle", counted)
        async with served(app) as url, Client(f"{url}/e/{episode.token}/mcp") as client:
            for word in ("a", "b", "c"):
                await client.call_tool("add", {"word": word})
            assert text_of(await client.call_tool("add_slowly", {"word": "d", "seconds": 0.0})) == "a b c d"
        assert "tools/call" not in through_sdk
        assert "server/discover" in through_sdk

    asyncio.run(main())
