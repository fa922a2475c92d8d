"""Episode URLs: what they show and what they refuse."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest
from mcp import Client
from wire_toys import (
    Ledger,
    ask,
    legacy_call,
    modern_call,
    raw_headers,
    served,
    text_of,
    toy_episodes,
)

from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.schema import schema_faults
from mcpgym.wire import PlayerApp, player_app

ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "auto", "legacy"])
HOST = {"host": "localhost:8000"}
CALLS = {"modern": modern_call, "legacy": legacy_call}


async def opened(episodes: Episodes, **config: Any) -> Episode:
    return await episodes.open("ledger", split="train", index=0, config=config or None)


async def post(app: PlayerApp, path: str, era: str, name: str, arguments: dict[str, Any] | None = None) -> Any:
    headers, body = CALLS[era](name, arguments)
    return await ask(app, path, raw_headers({**HOST, **headers}), json.dumps(body).encode())


@ERAS
def test_case_3_an_episode_url_lists_exactly_what_a_model_should_see(mode: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        async with served(player_app(episodes)) as url:
            episode = await opened(episodes)
            async with Client(f"{url}/e/{episode.token}/mcp", mode=mode) as client:
                listed = (await client.list_tools()).tools
                if mode != "2026-07-28":  # there, this client asks the server nothing of itself
                    assert client.instructions == Ledger.instructions
                    assert client.server_info is not None
                    assert (client.server_info.name, client.server_info.version) == ("ledger", "3")
                    assert client.server_info.icons is not None
        for tool, ours in zip(listed, Ledger.tools.values(), strict=True):
            seen = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
            assert seen == ours.listing
            assert "episode" not in tool.input_schema["properties"]
            assert tool.output_schema is None
            assert schema_faults("ledger", seen) == []  # case 20
        assert listed[0].title == "Add a word"
        assert listed[1].annotations is not None
        assert listed[1].annotations.read_only_hint is True

    asyncio.run(main())


@ERAS
def test_case_24_an_error_is_flagged_and_done_is_told_only_at_the_end(mode: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        async with served(player_app(episodes)) as url:
            episode = await opened(episodes)
            async with Client(f"{url}/e/{episode.token}/mcp", mode=mode) as client:

                async def call(name: str, arguments: dict[str, Any]) -> tuple[str, bool, bool]:
                    result = await client.call_tool(name, arguments)
                    return text_of(result), bool(result.is_error), bool((result.meta or {}).get("mcpgym/done"))

                assert await call("add", {"word": "a"}) == ("a", False, False)
                assert await call("add", {"word": "a", "times": 10}) == ("times is 0 to 9, not 10", True, False)
                text, flagged, done = await call("add", {"word": 5})
                assert flagged
                assert not done
                assert "word" in text
                assert await call("broken", {}) == ("broken failed inside the environment", True, False)
                assert await call("add", {"word": "stop"}) == ("a stop", False, True)
                after = await call("read", {})
                assert after == ("this episode has ended (done); no more calls", True, True)
            assert [record.is_error for record in episode.calls] == [False, True, True, True, False]

    asyncio.run(main())


@pytest.mark.flaky(reruns=1)  # it measures time
@ERAS
def test_case_12_a_call_past_its_limit_reads_a_tool_error_in_time(mode: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        async with served(player_app(episodes)) as url:
            episode = await opened(episodes)
            async with Client(f"{url}/e/{episode.token}/mcp", mode=mode) as client:
                began = time.monotonic()
                result = await client.call_tool("overrun", {"seconds": 1.0})
                assert time.monotonic() - began < 0.9
                assert result.is_error
                assert "did not finish within 0.15 s" in text_of(result)
                # The thread still holds the state: the next call waits for it rather than run beside it.
                assert text_of(await client.call_tool("add", {"word": "next"})) == "overrun next"

    asyncio.run(main())


@ERAS
def test_an_ended_episode_still_connects_and_every_call_says_that_it_ended(mode: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        async with served(player_app(episodes)) as url:
            episode = await opened(episodes)
            address = f"{url}/e/{episode.token}/mcp"
            async with Client(address, mode=mode) as before:
                await episodes.close(episode.token, "expired after 3 s without a call")
                assert text_of(await before.call_tool("read", {})).startswith("this episode has ended: expired")
            async with Client(address, mode=mode) as after:
                assert [tool.name for tool in (await after.list_tools()).tools] == list(Ledger.tools)
                result = await after.call_tool("add", {"word": "late"})
                assert result.is_error
                assert text_of(result) == "this episode has ended: expired after 3 s without a call"
                assert (await after.list_prompts()).prompts == []

    asyncio.run(main())


@pytest.mark.parametrize("secret", [None, "Bearer right"])
def test_case_26_other_routes_and_tokens_are_404_even_with_the_secret(secret: str | None) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        token = (await opened(episodes)).token
        app = player_app(episodes)
        paths = [
            "/", "/e", "/e/", f"/e/{token}", f"/e/{token}/", f"/e/{token}/mcp/", f"/e/{token.upper()}/mcp/x",
            f"/e/{token[:-1]}/mcp", f"/e/{'0' * 32}/mcp", "/e/../control/v1/mcp", "/mcp/", "/nope/mcp", "/e/mcp",
            "/control", "/control/", "/control/v1", "/control/v1/", "/control/v1/episodes", "/control/v1/health",
            f"/control/v1/episodes/{token}/score", "/control/v1/docs", "/control/mcp", "/health", "/metrics",
            "/docs", "/openapi.json", f"/e/{token}/mcp\n", f"/e/{token}\n/mcp", f"/e/{token}/control/v1/score",
        ]  # fmt: skip
        async with app.running():
            for path in paths:
                for method in ("GET", "POST", "DELETE", "PUT", "OPTIONS"):
                    headers, body = modern_call("read")
                    given = {**HOST, **headers, **({} if secret is None else {"authorization": secret})}
                    answer = await ask(app, path, raw_headers(given), json.dumps(body).encode(), method)
                    assert answer[0] == 404, (method, path)
                    assert token.encode() not in answer[2]

    asyncio.run(main())


def test_case_26_guessed_tools_methods_and_resources_gain_nothing() -> None:
    async def main() -> None:
        episodes = toy_episodes()
        async with served(player_app(episodes)) as url:
            episode = await episodes.open("ledger", split="train", index=7, seed=987654321)
            async with Client(f"{url}/e/{episode.token}/mcp", mode="2026-07-28") as client:
                seen = []
                for name in ("reset", "score", "state", "close", "start_episode", "_add", "length", "__init__"):
                    result = await client.call_tool(name, {})
                    assert result.is_error
                    seen.append(text_of(result))
                for address in (
                    "env://ledger/task/train-7", "env://ledger/tasks/train", "env://ledger/rules",
                    "env://ledger/tasks/test?offset=200",
                ):  # fmt: skip
                    seen += [content.text for content in (await client.read_resource(address)).contents]  # type: ignore[union-attr]
                for address in (
                    "env://ledger/task/train-7/info", "env://ledger/answers", "env://ledger/tasks/secret",
                    "env://count-er/rules", "env://ledger/tasks/train?offset=-1", "file:///etc/passwd",
                    "env://ledger/../control", "env://", "http://[",
                ):  # fmt: skip
                    with pytest.raises(Exception) as refused:  # noqa: PT011
                        await client.read_resource(address)
                    seen.append(str(refused.value))
                seen.append(str(await client.list_prompts()) + str(await client.get_prompt("task")))
            everything = "\n".join(seen)
            for secret in (episode.task.info["answer"], "SECRET", "987654321", episode.token):
                assert secret not in everything
            assert len(json.loads(seen[9])["ids"]) == 100
            assert json.loads(seen[9])["next"] == "env://ledger/tasks/train?offset=100"

    asyncio.run(main())


def test_no_answer_carries_a_session_and_none_is_needed() -> None:
    async def main() -> None:
        episodes = toy_episodes()
        token = (await opened(episodes)).token
        async with served(player_app(episodes)) as url, aiohttp.ClientSession() as http:
            start = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            }
            headers, body = legacy_call("add", {"word": "a"})
            hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": start}
            for sent in (hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, body, body):
                async with http.post(f"{url}/e/{token}/mcp", headers=headers, json=sent) as answer:
                    assert answer.status in (200, 202)
                    assert "mcp-session-id" not in answer.headers
                    text = await answer.text()
            assert '"text":"a a"' in text
            async with http.get(f"{url}/e/{token}/mcp", headers={"accept": "text/event-stream"}) as stream:
                assert stream.status == 405
                assert stream.headers["allow"] == "POST"

    asyncio.run(main())


@pytest.mark.parametrize("era", CALLS)
@pytest.mark.parametrize("path", ["/e/{}/mcp", "/mcp", "/ledger/mcp", "/e/" + "0" * 32 + "/mcp"])
def test_a_web_page_cannot_reach_the_server_by_a_name_of_its_own(path: str, era: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        app = player_app(episodes, allowed_hosts=["Gym.example", "other.example:81"])
        path_ = path.format((await opened(episodes)).token)
        headers, body = CALLS[era]("read")

        async def status(**given: str) -> int:
            sent = raw_headers({**headers, **{name: value for name, value in given.items() if value != "-"}})
            return (await ask(app, path_, sent, json.dumps(body).encode()))[0]

        async with app.running():
            for host in (
                "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", "evil.example:80",
                "localhost:8000:1", "user@localhost", "", "[::1", "other.example", "gym.example:x",
            ):  # fmt: skip
                assert await status(host=host) == 421, host
            assert await status(host="-") == 400
            fine = 404 if "000" in path else 200
            for host in ("localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:9", "gym.example", "gym.example:443",
                         "other.example:81"):  # fmt: skip
                assert await status(host=host) == fine, host
            for origin in (
                "http://evil.example",
                "null",
                "https://localhost.evil.example",
                "http://localhost@evil.example",
            ):
                assert await status(host="localhost", origin=origin) == 403, origin
            for origin in ("http://localhost:5173", "https://gym.example", "http://127.0.0.1"):
                assert await status(host="localhost", origin=origin) == fine, origin

    asyncio.run(main())


@pytest.mark.parametrize("era", CALLS)
def test_a_body_over_the_bound_is_refused_whether_announced_or_not(era: str) -> None:
    async def main() -> None:
        episodes = toy_episodes()
        app = player_app(episodes, max_body=2_000)
        episode = await opened(episodes)
        async with app.running():
            for length, status in ((1_000, 200), (1_900, 413), (3_000, 413)):
                headers, body = CALLS[era]("add", {"word": "w" * length})
                sent, raw = raw_headers({**HOST, **headers}), json.dumps(body).encode()
                for chunks in (1, 2, 7):
                    answer = await ask(app, f"/e/{episode.token}/mcp", sent, raw, chunks=chunks)
                    assert answer[0] == status
            announced = raw_headers({**HOST, **headers, "content-length": "999999"})
            assert (await ask(app, f"/e/{episode.token}/mcp", announced, b""))[0] == 413
        assert len(episode.calls) == 3

    asyncio.run(main())


def test_configurations_that_look_different_get_servers_of_their_own_within_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Spoken(Ledger):
        name = "spoken"

        def __init__(self, config: Any = None) -> None:
            super().__init__(config)
            self.instructions = f"At most {self.config.limit} calls."  # type: ignore[misc]

    async def main() -> None:
        monkeypatch.setattr("mcpgym.wire.hosting.MAX_FACES", 3)
        episodes = Episodes({"spoken": Spoken()})
        app = player_app(episodes)
        async with served(app) as url:
            for limit in [*range(10, 20), 10, 11]:
                episode = await episodes.open("spoken", split="train", index=0, config={"limit": limit})
                async with Client(f"{url}/e/{episode.token}/mcp", mode="legacy") as client:
                    assert client.instructions == f"At most {limit} calls."
                    assert text_of(await client.call_tool("add", {"word": "a"})) == "a"
                assert len(app._hosting._hosted) <= 3
        assert app._hosting._hosted == {}

    asyncio.run(main())


def test_the_app_runs_under_an_asgi_servers_lifespan_and_refuses_web_sockets() -> None:
    async def main() -> None:
        episodes = toy_episodes()
        episode = await opened(episodes)
        app = player_app(episodes, fast_lane=False)
        path = f"/e/{episode.token}/mcp"
        with pytest.raises(RuntimeError, match="running"):
            await post(app, path, "modern", "read")
        said: asyncio.Queue[str] = asyncio.Queue()
        told: asyncio.Queue[Any] = asyncio.Queue()

        async def send(message: Any) -> None:
            said.put_nowait(message["type"])

        task = asyncio.ensure_future(app({"type": "lifespan"}, told.get, send))
        told.put_nowait({"type": "lifespan.startup"})
        assert await said.get() == "lifespan.startup.complete"
        assert (await post(app, path, "modern", "read"))[0] == 200
        await app({"type": "websocket", "path": path, "headers": []}, connect, send)
        assert await said.get() == "websocket.close"
        told.put_nowait({"type": "lifespan.shutdown"})
        await task
        assert await said.get() == "lifespan.shutdown.complete"

    async def connect() -> Any:
        return {"type": "websocket.connect"}

    asyncio.run(main())
