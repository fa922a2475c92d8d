"""Lanes: one behaviour in process, over the control plane, and over MCP with either client in either era."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import aiohttp
import pytest
import rl_toys
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value, encode_header_value

from mcpgym.control import ControlPlane, LocalControl, OpenedEpisode
from mcpgym.control_client import HttpControl
from mcpgym.episodes import Episodes, Limits
from mcpgym.errors import ConfigurationError
from mcpgym.serving import Serving, serving
from mcpgym_rl.lanes import ControlLane, Lane, McpLane, ToolsDiffer
from mcpgym_rl.mcp_thin import MAX_ANSWER, header_value
from mcpgym_rl.policies import make_policy
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.rollout import rollout
from mcpgym_rl.run import EpisodeSpec, run
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace

ADD = {"name": "add", "arguments": {"amount": 1}}
EVERYTHING = ScriptedPolicy(
    [
        ADD,
        {"name": "peek"},
        {
            "text": "ünï",
            "calls": [{"name": "nope", "arguments": {"é": "\n☃😀"}}, {"name": "tool\nö"}, {"name": "=?base64?x?="}],
        },
        {"calls": [{"name": "add", "arguments": "{"}, {"name": "add", "arguments": {"amount": True}}, {"name": "add"}]},
        {"calls": [{"name": "add", "arguments": {"amount": 1.0, "extra": None}}, {"name": "peek"}, {"name": "peek"}]},
        {"calls": [{"name": "wait", "arguments": {"seconds": 0.001}}, {"name": "add", "arguments": {"amount": -2}}]},
        {"calls": [ADD, ADD, ADD, {"name": "peek"}]},
    ]
)

LANES: dict[str, Callable[[Serving], Lane]] = {
    "control": lambda server: ControlLane(remote(server)),
    "thin": lambda server: McpLane(remote(server)),
    "thin, control in process": lambda server: McpLane(server.control),
    "official, auto": lambda server: McpLane(remote(server), client="official"),
    "official, 2026-07-28": lambda server: McpLane(remote(server), client="official", mode="2026-07-28"),
    "official, 2025-11-25": lambda server: McpLane(remote(server), client="official", mode="legacy"),
}


def remote(server: Serving) -> HttpControl:
    return HttpControl(server.control_url, server.secret)


def comparable(trace: Trace) -> dict[str, Any]:
    made = trace.to_dict()
    del made["seconds"]
    for call in made["calls"]:
        del call["milliseconds"]
    return made


async def play(lane: Lane, policy: Any = EVERYTHING, **options: Any) -> Trace:
    return await rollout(policy, lane, environment="counter", split="train", index=4, seed=11, **options)


@pytest.mark.parametrize("name", LANES)
@pytest.mark.parametrize("fast_lane", [True, False], ids=["fast", "sdk"])
def test_case_6_the_same_script_gives_the_same_trace_in_every_lane_and_era(name: str, fast_lane: bool) -> None:
    async def main() -> None:
        expected = comparable(await play(ControlLane(rl_toys.control()), config={"goal": 5}))
        assert expected["stop_reason"] == "max_turns"
        assert sum(call["is_error"] for call in expected["calls"]) > 5
        async with serving(rl_toys.episodes(), fast_lane=fast_lane) as server:
            lane = LANES[name](server)
            assert comparable(await play(lane, config={"goal": 5})) == expected
            done = await play(lane, ScriptedPolicy([ADD, ADD, ADD]))
            assert done.stop_reason == StopReason.DONE
            assert (await rollout(ScriptedPolicy(["no", "yes"]), lane, environment="chat", split="train")).score
            assert len(server.episodes) == 0
            await lane.aclose()

    asyncio.run(main())


@contextlib.asynccontextmanager
async def between(
    server: Serving,
    handle: Callable[[bytes, Callable[[], Awaitable[bytes]], web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[ControlPlane]:
    """A server between player and server, and a control plane that sends players there."""
    async with aiohttp.ClientSession() as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            body = await request.read()
            headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}

            async def ask() -> bytes:
                async with session.post(f"{server.url}{request.path}", data=body, headers=headers) as response:
                    return await response.read()

            return await handle(body, ask, request)

        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/{path:.*}", forward)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"

        class Redirected(LocalControl):
            async def open(self, environment: str, **options: Any) -> OpenedEpisode:
                opened = await super().open(environment, **options)
                return dataclasses.replace(opened, url=f"{base}/e/{opened.token}/mcp")

        try:
            yield Redirected(server.episodes, server.url)
        finally:
            await runner.cleanup()


def answered(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


def test_a_call_whose_answer_was_lost_is_sent_again_and_runs_once() -> None:
    calls: list[dict[str, Any]] = []

    async def lose_first(body: bytes, ask: Callable[[], Awaitable[bytes]], request: web.Request) -> web.StreamResponse:
        said = await ask()
        message = json.loads(body)
        if message["method"] == "tools/call":
            calls.append(message["params"]["_meta"])
            if len(calls) % 2:
                assert request.transport is not None
                request.transport.close()  # the server has run it; the client never hears
        return answered(said)

    async def main() -> None:
        async with serving(rl_toys.episodes()) as server, between(server, lose_first) as control:
            lane = McpLane(control)
            trace = await play(lane, ScriptedPolicy([ADD, ADD, ADD]))
            await lane.aclose()
            assert [call.result for call in trace.calls] == ["count 1", "count 2", "count 3"]
            assert trace.stop_reason == StopReason.DONE

    asyncio.run(main())
    keys = [meta["mcpgym/idempotencyKey"] for meta in calls]
    assert len(keys) == 6
    assert keys[0::2] == keys[1::2], "the second try is the same call"
    assert len(set(keys)) == 3, "each call has a key of its own"


def test_a_server_that_drops_every_connection_is_unavailable_and_named_without_its_token() -> None:
    async def drop(body: bytes, ask: Any, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async def main() -> None:
        async with serving(rl_toys.episodes()) as server, between(server, drop) as control:
            lane = McpLane(control)
            trace = await play(lane)
            assert trace.stop_reason == StopReason.ENVIRONMENT_FAILED
            assert trace.error is not None
            assert trace.error.kind == "ServerUnavailable"
            assert "cannot be reached" in trace.error.message
            assert "/e/" not in trace.error.message
            assert len(server.episodes) == 0
            await lane.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("client", ["thin", "official"])
def test_case_21_tools_that_differ_from_what_the_control_plane_states_are_an_error(client: Any) -> None:
    async def change(body: bytes, ask: Callable[[], Awaitable[bytes]], request: web.Request) -> web.StreamResponse:
        said = await ask()
        return answered(said.replace(b"How much.", b"How many?"))

    async def main() -> None:
        async with serving(rl_toys.episodes()) as server, between(server, change) as control:
            lane = McpLane(control, client=client)
            with pytest.raises(ToolsDiffer, match="are not those the control plane states"):
                await play(lane)
            assert len(server.episodes) == 0
            await lane.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("pieces", [1, 7, 10_000])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_answers_as_events_are_read_whatever_comes_before_them_and_however_they_are_cut(
    pieces: int, newline: bytes
) -> None:
    async def stream(body: bytes, ask: Callable[[], Awaitable[bytes]], request: web.Request) -> web.StreamResponse:
        said = json.dumps(json.loads(await ask()), indent=1, ensure_ascii=False).encode()
        note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}).encode()
        events = b": hello\n\nid: 1\ndata:\n\nevent: message\ndata: " + note + b"\n\n"
        events += b"event: message\n" + b"".join(b"data: " + line + b"\n" for line in said.split(b"\n")) + b"\n"
        events = events.replace(b"\n", newline)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for start in range(0, len(events), pieces if pieces > 1 else 97):
            await response.write(events[start : start + (pieces if pieces > 1 else 97)])
        return response

    async def main() -> None:
        async with serving(rl_toys.episodes()) as server, between(server, stream) as control:
            lane = McpLane(control)
            expected = comparable(await play(ControlLane(rl_toys.control())))
            assert comparable(await play(lane)) == expected
            await lane.aclose()

    asyncio.run(main())


def odd(status: int, body: bytes, kind: str = "application/json") -> Any:
    async def handle(request_body: bytes, ask: Callable[[], Awaitable[bytes]], request: web.Request) -> web.Response:
        if json.loads(request_body)["method"] == "tools/list":
            return answered(await ask())
        return web.Response(status=status, body=body, content_type=kind)

    return handle


@pytest.mark.parametrize(
    ("handle", "words"),
    [
        (odd(200, b"<html>", "text/html"), "is no MCP server of ours"),
        (odd(404, b"not found", "text/plain"), "it answers 404, 'not found'"),
        (odd(503, b""), "answers 503"),
        (odd(200, b"[]"), "no JSON-RPC"),
        (odd(200, b"null"), "no JSON-RPC"),
        (odd(200, b'{"result": 7}'), "no JSON-RPC"),
        (odd(200, b"[" * 100_000), "is no MCP server of ours"),
        (odd(200, b'{"error": {"code": -32603, "message": "internal"}}'), "refused the call: internal (-32603)"),
        (odd(200, b"data: {}\n\n", "text/event-stream"), "ended its answer before it was whole"),
        (odd(200, b" " * (MAX_ANSWER + 1)), "over 33554432 bytes"),
    ],
    ids=["html", "404", "503", "list", "null", "number", "deep", "internal error", "no event", "huge"],
)
def test_what_is_no_answer_of_an_mcp_server_is_an_infrastructure_failure(handle: Any, words: str) -> None:
    async def main() -> None:
        async with serving(rl_toys.episodes()) as server, between(server, handle) as control:
            lane = McpLane(control)
            trace = await play(lane)
            assert trace.score is None
            assert trace.error is not None
            assert trace.error.kind == "ServerUnavailable"
            assert words in trace.error.message
            await lane.aclose()

    asyncio.run(main())


def test_a_refusal_of_name_or_arguments_is_the_policys_to_read() -> None:
    refusal = odd(200, b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool"}}')

    async def main() -> None:
        async with serving(rl_toys.episodes()) as server, between(server, refusal) as control:
            lane = McpLane(control)
            trace = await play(lane, ScriptedPolicy([ADD, "stop"]))
            assert (trace.calls[0].result, trace.calls[0].is_error) == ("Unknown tool", True)
            assert trace.score is not None
            await lane.aclose()

    asyncio.run(main())


def test_case_12_a_server_that_never_answers_meets_the_lanes_deadline() -> None:
    async def hang(body: bytes, ask: Callable[[], Awaitable[bytes]], request: web.Request) -> web.Response:
        if json.loads(body)["method"] == "tools/call":
            await asyncio.sleep(20)
        return answered(await ask())

    async def main() -> None:
        async with serving(rl_toys.episodes()) as server, between(server, hang) as control:
            lane = McpLane(control, timeout=0.3)
            trace = await play(lane)
            assert trace.error is not None
            assert trace.error.message.endswith("did not answer within 0.3 s")
            await lane.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("client", ["thin", "official"])
@pytest.mark.flaky(reruns=1)  # it measures time
def test_case_11_a_call_cancelled_over_mcp_is_cancelled_in_the_environment(client: Any) -> None:
    async def main() -> None:
        async with serving(rl_toys.episodes()) as server:
            lane = McpLane(remote(server), client=client)
            slow = ScriptedPolicy([{"name": "wait", "arguments": {"seconds": 25}}])
            task = asyncio.create_task(play(lane, slow))
            while not any(episode.busy for episode in server.episodes._live.values()):
                await asyncio.sleep(0.01)
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - started < 12
            assert len(server.episodes) == 0
            await lane.aclose()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left

    asyncio.run(main())


def test_a_server_at_its_cap_leaves_the_rollout_unscored() -> None:
    async def main() -> None:
        async with serving(rl_toys.episodes(Limits(live=1))) as server:
            lane = McpLane(remote(server))
            held = await lane.open("counter", split="train")
            trace = await play(lane)
            assert trace.stop_reason == StopReason.ENVIRONMENT_FAILED
            assert trace.error is not None
            assert trace.error.kind == "TooManyEpisodes"
            await held.aclose()
            await lane.aclose()

    asyncio.run(main())


def test_a_control_plane_without_a_url_and_odd_options_name_the_fix() -> None:
    async def main() -> None:
        control = rl_toys.control()
        with pytest.raises(ConfigurationError, match="use ControlLane"):
            await play(McpLane(control))
        assert len(control.episodes) == 0

    asyncio.run(main())
    wrong: list[Mapping[str, Any]] = [{"client": "thick"}, {"mode": "legacy"}, {"client": "official", "mode": "x"}]
    for options in wrong:
        with pytest.raises(ConfigurationError):
            McpLane(rl_toys.control(), **options)


def test_case_9_a_burst_of_256_episodes_drops_no_connection() -> None:
    async def main() -> None:
        async with serving(rl_toys.episodes()) as server:
            lane = McpLane(remote(server))
            specs = [EpisodeSpec("counter", split="train", index=i % 50, seed=i) for i in range(256)]
            result = await run(ScriptedPolicy([ADD, {"name": "peek"}, ADD, ADD]), lane, specs, concurrency=256)
            assert result.failure is None
            assert [trace.error for trace in result.traces] == [None] * 256
            assert {trace.stop_reason for trace in result.traces} == {StopReason.DONE}
            assert len(server.episodes) == 0
            await lane.aclose()

    asyncio.run(main())


def test_a_server_that_is_not_there_is_named() -> None:
    async def main() -> None:
        lane = McpLane(HttpControl("http://127.0.0.1:9", "s" * 40))
        trace = await play(lane)
        assert trace.error is not None
        assert trace.error.kind == "ServerUnavailable"
        await lane.aclose()

    asyncio.run(main())


@given(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
    | st.sampled_from(["=?base64?x?=", " a", "a\n"])
)
def test_names_in_headers_are_what_the_sdk_reads(name: str) -> None:
    assert decode_header_value(header_value(name)) == name
    assert header_value(name) == encode_header_value(name)


@pytest.mark.parametrize("name", LANES)
def test_the_same_games_of_tic_tac_toe_are_played_in_every_lane_and_era(name: str) -> None:
    specs = [EpisodeSpec("tic-tac-toe", split="test", index=i, seed=2) for i in range(12)]

    async def games(lane: Lane, episodes: Episodes) -> list[dict[str, Any]]:
        policy = make_policy("random", episodes.environments["tic-tac-toe"])
        result = await run(policy, lane, specs, concurrency=6)
        return [comparable(trace) for trace in result.traces]

    async def main() -> None:
        local = Episodes.of("tic-tac-toe")
        expected = await games(ControlLane(LocalControl(local)), local)
        assert {trace["stop_reason"] for trace in expected} == {"done"}
        assert len({trace["score"]["game_outcome"] for trace in expected}) > 1
        async with serving(Episodes.of("tic-tac-toe")) as server:
            lane = LANES[name](server)
            assert await games(lane, server.episodes) == expected
            await lane.aclose()

    asyncio.run(main())
