"""Whatever a client sends, in either protocol era: an answer at once that says what is wrong, and nothing of ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.wire_toys import HOST_HEADERS, ask, raw_headers, toy_episodes

from mcpgym.wire import player_app

SECONDS = 5.0
METHODS = [
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "server/discover",
    "subscriptions/listen",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "no/such/method",
    "",
]
texts = st.one_of(
    st.sampled_from(
        [
            "ledger",
            "task",
            "add",
            "start_episode",
            "train-0",
            "env://ledger/rules",
            "env://ledger/tasks/train?offset=9",
            "env://ledger/task/{id}",
            "env://[",
            "\ud800",
            "env://ledger/task/\udfff",
            "http://[::1",
            "",
        ]
    ),
    st.text(max_size=30),
)
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
params = st.fixed_dictionaries(
    {},
    optional={
        "name": st.one_of(texts, values),
        "arguments": st.one_of(st.dictionaries(texts, values, max_size=3), values),
        "uri": st.one_of(texts, values),
        "cursor": values,
        "level": st.one_of(st.sampled_from(["info", "loud"]), values),
        "ref": st.one_of(
            st.fixed_dictionaries({"type": st.just("ref/prompt"), "name": texts}),
            st.fixed_dictionaries({"type": st.just("ref/resource"), "uri": texts}),
            values,
        ),
        "argument": st.one_of(st.fixed_dictionaries({"name": texts, "value": texts}), values),
        "protocolVersion": st.one_of(st.sampled_from(["2025-11-25", "2024-11-05"]), values),
        "capabilities": st.one_of(st.just({}), values),
        "clientInfo": st.one_of(st.just({"name": "t", "version": "1"}), values),
        "inputResponses": values,
        "notifications": values,
    },
)
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}
meta = st.one_of(*[st.just(ENVELOPE)] * 4, values)


@st.composite
def requests(draw: st.DrawFn) -> tuple[dict[str, str], bytes]:
    """A request that is nearly right: each part of it may be odd."""
    method = draw(st.one_of(st.sampled_from(METHODS), texts))
    version = draw(st.sampled_from([*["2026-07-28"] * 5, *["2025-11-25"] * 4, "2024-11-05", "soon", ""]))
    given: Any = draw(st.one_of(params, params, params, values))
    if isinstance(given, dict) and (version == "2026-07-28" or draw(st.booleans())):
        given = {**given, "_meta": draw(meta)}
    number = draw(st.one_of(st.just(1), st.just("a"), st.integers(), values))
    body: Any = {"jsonrpc": "2.0", "id": number, "method": method, "params": given}
    if draw(st.integers(0, 9)) == 0:
        body = draw(st.one_of(values, st.just([body, body])))  # a batch, which no protocol here has
    sent = json.dumps(body).encode()
    if draw(st.integers(0, 9)) == 0:
        sent = draw(st.one_of(st.binary(max_size=40), st.just(sent[:-1]), st.just(b"[" * 50_000)))
    routing = method.encode("ascii", "replace").decode().replace("\n", " ").replace("\r", " ")
    name = given.get("name", given.get("uri", "")) if isinstance(given, dict) else ""
    shown = str(name).encode("ascii", "replace").decode().replace("\n", " ").replace("\r", " ")
    headers = {
        "content-type": draw(st.sampled_from([*["application/json"] * 6, "application/json; charset=utf-8", "a/b"])),
        "accept": draw(st.sampled_from([*["application/json, text/event-stream"] * 6, "*/*", "text/html", ""])),
        "mcp-protocol-version": version,
        "mcp-method": draw(st.sampled_from([*[routing] * 6, "tools/list"])),
        "mcp-name": shown,
    }
    dropped = draw(st.sampled_from([*[()] * 8, *[(name,) for name in headers]]))
    return {**HOST_HEADERS, **{key: value for key, value in headers.items() if key not in dropped}}, sent


class Server:
    """The listener on an event loop of its own, so that examples share one."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = ThreadPoolExecutor(1)
        self.thread.submit(self.loop.run_forever)
        self.paths = self.do(self._begin())

    def do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(30)

    async def _begin(self) -> list[str]:
        episodes = toy_episodes()
        episode = await episodes.open("ledger", split="train", index=0)
        self.app = player_app(episodes)
        self.running = self.app.running()
        await self.running.__aenter__()
        return [f"/e/{episode.token}/mcp", "/mcp", "/ledger/mcp"]

    def end(self) -> None:
        self.do(self.running.__aexit__(None, None, None))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.shutdown()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.end()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(request=requests(), place=st.integers(0, 2))
def test_no_request_breaks_the_listener(server: Server, request: tuple[dict[str, str], bytes], place: int) -> None:
    headers, sent = request
    work = asyncio.wait_for(ask(server.app, server.paths[place], raw_headers(headers), sent), SECONDS)
    status, kind, body = server.do(work)
    assert status < 500, body
    assert b"Traceback" not in body
    assert b'.py"' not in body
    if kind is None:  # a notification; or one that reads or writes no JSON
        assert body in (b"", b"Invalid Content-Type header")
        assert status == 202 or 400 <= status < 500
        return
    if status == 202:
        assert body == b""
        return
    assert kind == b"application/json", (status, body)
    answer = json.loads(body)
    assert answer["jsonrpc"] == "2.0"
    assert ("result" in answer) != ("error" in answer)
    assert answer.get("error", {}).get("code") not in (0, -32603), body  # what the SDK makes of an exception
