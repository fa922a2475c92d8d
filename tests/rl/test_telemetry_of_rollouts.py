"""One trace of a rollout over every lane, as a real OTLP receiver gets it; and nothing in it that is not to be told."""

from __future__ import annotations

import asyncio
from collections import Counter as Count
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.rl.rl_toys import control, episodes
from tests.server.telemetry_backend import Backend, attributes, backend

from mcpgym.control import LocalControl
from mcpgym.control_client import HttpControl
from mcpgym.messages import assistant, tool_call
from mcpgym.serving import serving
from mcpgym.telemetry import settings, switch
from mcpgym.telemetry.spans import digest
from mcpgym_rl.lanes import ControlLane, Lane, McpLane
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.rollout import Limits, rollout
from mcpgym_rl.traces import Trace

SEED = 918_273_645_546_372
SECRET = "the-control-secret-of-this-test"
SAID = "what-only-the-policy-said"
LANES = ("in process", "control", "thin", "official", "older protocol", "SDK lane")


@contextmanager
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    with backend() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        with settings.telemetry("tests"):
            yield found


def policy() -> ScriptedPolicy:
    calls = [
        tool_call("a", "add", '{"amount": 1}'),
        tool_call("b", "add", f'{{"amount": "{SAID}"}}'),
        tool_call("c", SAID, "{}"),
        tool_call("d", "wait", "{}"),
        tool_call("e", "add", '{"amount": 2}'),
    ]
    return ScriptedPolicy([assistant(SAID, [call]) for call in calls])


async def played(name: str, tokens: list[str]) -> Trace:
    """A rollout over one lane; the tokens of its episodes go to ``tokens``."""

    def remember(opened: Any) -> Any:
        tokens.append(opened.token)
        return opened

    async def over(lane: Lane, plane: Any) -> Trace:
        opening = plane.open

        async def watched(*given: Any, **named: Any) -> Any:
            return remember(await opening(*given, **named))

        plane.open = watched
        try:
            return await rollout(
                policy(), lane, environment="counter", split="train", index=7, seed=SEED, limits=Limits(max_turns=9)
            )
        finally:
            await lane.aclose()

    if name == "in process":
        plane: Any = LocalControl(episodes())
        return await over(ControlLane(plane), plane)
    async with serving(episodes(), secret=SECRET, fast_lane=name != "SDK lane") as server:
        plane = HttpControl(server.control_url, SECRET)
        match name:
            case "control":
                return await over(ControlLane(plane), plane)
            case "official":
                return await over(McpLane(plane, client="official"), plane)
            case "older protocol":
                return await over(McpLane(plane, client="official", mode="legacy"), plane)
        return await over(McpLane(plane), plane)


@pytest.mark.parametrize("name", LANES)
def test_a_rollout_is_one_trace_over_every_lane(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: list[str] = []
    with sent(monkeypatch) as found:
        trace = asyncio.run(played(name, tokens))
        assert trace.error is None
        assert trace.score is not None
    spans = {span.span_id: span for span in found.spans}
    over_mcp = name not in ("in process", "control")
    call = "tools/call" if over_mcp else "execute_tool"
    (root,) = [span for span in spans.values() if span.name == "rollout counter"]
    own = {key: span for key, span in spans.items() if span.trace_id == root.trace_id}

    def below(span: Any) -> list[str]:
        children = [child for child in own.values() if child.parent_span_id == span.span_id]
        return [child.name for child in sorted(children, key=lambda child: child.start_time_unix_nano)]

    assert Count(below(root)) == {
        "episode counter": 1,
        "turn": 5,
        "score": 1,
        **({"tools/list": 1} if over_mcp else {}),
    }
    turns = sorted((s for s in own.values() if s.name == "turn"), key=lambda s: s.start_time_unix_nano)
    tools = ["add", "add", "_unknown", "wait", "add"]
    assert [below(turn) for turn in turns] == [["chat script", f"{call} {tool}"] for tool in tools]
    failed = []
    for turn in turns:
        (client,) = [s for s in own.values() if s.parent_span_id == turn.span_id and s.name.startswith(call)]
        (server,) = [s for s in own.values() if s.parent_span_id == client.span_id]
        assert server.name == client.name
        assert client.kind == 3
        assert server.kind == (1 if name == "in process" else 2)
        assert bool(server.flags & 0x200) == (name != "in process"), "whether its parent is in another process"
        assert client.start_time_unix_nano <= server.start_time_unix_nano
        assert server.end_time_unix_nano <= client.end_time_unix_nano
        failed.append((client.status.code, server.status.code))
    assert failed == [(0, 0), (2, 2), (2, 2), (0, 0), (0, 0)]
    (scored,) = [s for s in own.values() if s.name == "score counter"]
    assert below(scored) == ["reward reached", "reward spoke"]
    assert attributes(scored)["gen_ai.evaluation.score.value"] == trace.score.total
    (token,) = tokens
    named = {span.name for span in own.values() if attributes(span).get("mcpgym.episode") == digest(token)}
    assert {"rollout counter", "episode counter", f"{call} add", "score counter"} <= named
    for hidden in (token, str(SEED), SECRET, SAID, "amount", "Count to the goal", "there is no tool"):
        assert hidden.encode() not in found.raw
    assert token.encode().hex().encode() not in found.raw
    assert found.services == {"tests"}


def test_metrics_come_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with sent(monkeypatch) as found:
        kept = control()

        async def main() -> None:
            opened = await kept.open("counter", split="train", index=0)
            for amount in (1, -1):
                await kept.step([_call(opened.token, amount)])
            await kept.open("chat", split="train", index=0)

        asyncio.run(main())
        settings.flush()
        live = {
            attributes(p)["mcpgym.environment"]: p.as_int for p in found.metrics["mcpgym.episodes.live"].sum.data_points
        }
        assert (live["counter"], live["chat"], live["broken-reset"]) == (1, 1, 0)
        errors = found.metrics["mcpgym.tool_call.errors"].sum.data_points
        assert {attributes(p)["mcpgym.environment"]: p.as_int for p in errors}["counter"] == 1
        (durations,) = found.metrics["mcpgym.tool_call.duration"].histogram.data_points
        assert (durations.count, sum(durations.bucket_counts)) == (2, 2)
        assert 0 < durations.min <= durations.max <= durations.sum
        assert b"Count to" not in found.raw


def _call(token: str, amount: int) -> Any:
    from mcpgym.control import Call

    return Call(token, "add", {"amount": amount})


def test_a_caller_in_another_trace_is_the_parent_and_the_episode_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone's own client, with a trace of its own, plays an episode that nobody's rollout opened."""
    from mcp import Client
    from opentelemetry import trace as shared
    from opentelemetry.sdk.trace import TracerProvider

    async def main() -> str:
        async with serving(episodes(), secret=SECRET) as server:
            opened = await server.control.open("counter", split="train", index=0)
            span = TracerProvider(shutdown_on_exit=False).get_tracer("theirs").start_span("theirs")
            async with Client(str(opened.url)) as client:
                with shared.use_span(span):
                    await client.call_tool("add", {"amount": 1})
                await client.call_tool("add", {"amount": 1}, meta={"traceparent": "nonsense"})
            return format(span.get_span_context().trace_id, "032x")

    with sent(monkeypatch) as found:
        theirs = asyncio.run(main())
    (episode,) = [span for span in found.spans if span.name == "episode counter"]
    calls = {span.trace_id.hex(): span for span in found.spans if span.name == "tools/call add"}
    assert calls.keys() == {theirs, episode.trace_id.hex()}
    (link,) = calls[theirs].links
    assert (link.trace_id, link.span_id) == (episode.trace_id, episode.span_id)
    assert calls[episode.trace_id.hex()].parent_span_id == episode.span_id


def test_calls_that_name_no_span_are_their_episode_s_however_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once or after waiting, over MCP or in process, right or wrong; in one process, of one episode, in turns."""
    from mcp import Client

    one = {"amount": 1}
    over_mcp = [("add", one), ("wait", {}), ("no such tool", {}), ("add", {}), ("wait", {}), ("add", one)]

    async def main() -> None:
        async with serving(episodes(), secret=SECRET) as server:
            opened = await server.control.open("counter", split="train", index=0)
            async with Client(str(opened.url)) as client:
                for name, arguments in over_mcp:
                    await client.call_tool(name, arguments)
                    await server.control.step([_call(opened.token, 0)])

    with sent(monkeypatch) as found:
        asyncio.run(main())
    (episode,) = [span for span in found.spans if span.name == "episode counter"]
    calls = [span for span in found.spans if span.parent_span_id == episode.span_id]
    assert {span.trace_id for span in calls} == {episode.trace_id}
    assert Count((span.name, span.kind, span.status.code) for span in calls) == {
        ("tools/call add", 2, 0): 2,
        ("tools/call add", 2, 2): 1,
        ("tools/call wait", 2, 0): 2,
        ("tools/call _unknown", 2, 2): 1,
        ("execute_tool add", 1, 0): 6,
    }
    assert all(0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in calls)
    assert len({span.span_id for span in calls}) == len(calls) == 12


def test_a_rollout_that_fails_says_so_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        kept = ControlLane(control())
        for environment in ("broken-reset", "broken-reward"):
            await rollout(ScriptedPolicy(["yes", "yes"]), kept, environment=environment, split="train")

    with sent(monkeypatch) as found:
        asyncio.run(main())
    by_name = {span.name: span for span in found.spans}
    for name in ("rollout broken-reset", "rollout broken-reward", "score", "reward agreed"):
        assert by_name[name].status.code == 2, name
    assert attributes(by_name["rollout broken-reset"])["mcpgym.stop_reason"] == "environment_failed"
    assert attributes(by_name["reward agreed"])["error.type"] == "RewardError"
    assert b"board is missing" not in found.raw
    assert b"ZeroDivision" not in found.raw
    assert switch.recorder is None
