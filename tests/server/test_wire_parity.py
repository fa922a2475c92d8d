"""The fast lane answers what the SDK answers: same status, same content type, same bytes, for good and bad requests."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wire_corpus import (
    CAPABILITIES,
    CORPUS,
    GONE,
    INFO,
    LEVEL,
    PLAIN,
    PLAIN_HEADERS,
    VERSION,
    Answer,
    Request,
    sentinel,
)
from wire_toys import ask, raw_headers, toy_episodes

from mcpgym.wire import PlayerApp, player_app


class Twins:
    """Two apps over one set of environments, one with the fast lane and one without, each with its own episode."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self.runner = runner
        self.episodes = toy_episodes()
        self.fast = player_app(self.episodes, max_body=300_000)
        self.slow = player_app(self.episodes, max_body=300_000, fast_lane=False)
        self._contexts = [self.fast.running(), self.slow.running()]

    def compare(self, requests: list[Request], path: str = "/e/{}/mcp", state: str = "live") -> list[Answer]:
        """The answers of both, which must be equal, and must leave the episodes in equal states."""

        async def send(app: PlayerApp, token: str) -> list[Answer]:
            return [await ask(app, path.format(token), headers, body, method) for headers, body, method in requests]

        async def main() -> list[Answer]:
            one, two = [await self.episodes.open("ledger", split="train", index=0) for _ in range(2)]
            for episode in (one, two):
                if state == "done":
                    await episode.call("add", {"word": "stop"})
                if state == "ended":
                    await self.episodes.close(episode.token)
            async with asyncio.timeout(20):
                fast, slow = await send(self.fast, one.token), await send(self.slow, two.token)
                while one._stuck or two._stuck:  # a thread past its limit is still at work
                    await asyncio.sleep(0.01)
            assert fast == slow
            assert one.state == two.state
            assert [(c.name, repr(c.arguments), c.text) for c in one.calls] == [
                (c.name, repr(c.arguments), c.text) for c in two.calls
            ]
            return fast

        return self.runner.run(main())


@pytest.fixture(scope="module")
def twins() -> Iterator[Twins]:
    with asyncio.Runner() as runner:
        made = Twins(runner)
        over = asyncio.Event()

        async def hold() -> None:
            async with made.fast.running(), made.slow.running():
                await over.wait()

        async def start() -> asyncio.Task[None]:
            task = asyncio.ensure_future(hold())
            await asyncio.sleep(0)
            return task

        async def stop(task: asyncio.Task[None]) -> None:
            over.set()
            await task

        task = runner.run(start())
        yield made
        runner.run(stop(task))


def test_the_corpus_is_large_and_varied(twins: Twins) -> None:
    assert len(CORPUS) >= 200
    statuses = {twins.compare([request])[0][0] for request in CORPUS.values()}
    assert statuses >= {200, 202, 400, 403, 404, 405, 406, 413, 421}


@pytest.mark.parametrize("state", ["live", "done", "ended"])
def test_both_lanes_answer_the_corpus_alike(twins: Twins, state: str) -> None:
    for name, request in CORPUS.items():
        try:
            twins.compare([request], state=state)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def test_both_lanes_answer_a_key_that_comes_again_alike(twins: Twins) -> None:
    def keyed(word: str, key: str, header: str | None = None) -> Request:
        body = copy.deepcopy(PLAIN)
        body["params"]["arguments"]["word"] = word
        if key:
            body["params"]["_meta"]["claudecode/toolUseId"] = key
        headers = {**PLAIN_HEADERS, **({} if header is None else {"idempotency-key": header})}
        return raw_headers(headers), json.dumps(body).encode(), "POST"

    answers = twins.compare(
        [
            keyed("a", "k1"),
            keyed("a", "k1"),
            keyed("b", "k1"),
            keyed("b", "", "k1"),
            keyed("a", "", "k1"),
            keyed("a", ""),
        ]
    )
    texts = [json.loads(body)["result"]["content"][0]["text"] for _, _, body in answers]
    taken = "this idempotency key belongs to another call; use a new one"
    assert texts == ["a", "a", taken, taken, "a", "a a"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/e/" + "0" * 32 + "/mcp", 404),
        ("/e/{}/mcp/", 404),
        ("/e/{}", 404),
        ("/e/{}/MCP", 404),
        ("/e/{}x/mcp", 404),
        ("//e/{}/mcp", 404),
        ("/e/{}/mcp/../control/v1", 404),
        ("/control/v1/episodes/{}", 404),
        ("/", 404),
        ("/nope/mcp", 404),
        ("/mcp", 200),
        ("/ledger/mcp", 200),
    ],
)
def test_both_lanes_answer_other_paths_alike(twins: Twins, path: str, status: int) -> None:
    assert twins.compare([CORPUS["body: plain"]], path)[0][0] == status


TAKEN: list[Callable[[], Request]] = [
    lambda: CORPUS["body: plain"],
    lambda: CORPUS["name: unknown"],
    lambda: CORPUS["call: add_slowly"],
    lambda: CORPUS["call: add_in_thread"],
    lambda: CORPUS["call: broken"],
    lambda: CORPUS["call: read"],
    lambda: CORPUS["header: accept 0 'application/json'"],
    lambda: CORPUS["header: idempotency-key 0 'k'"],
]


@pytest.mark.parametrize("request_of", TAKEN)
def test_plain_calls_really_take_the_fast_lane(
    twins: Twins, request_of: Callable[[], Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Any) -> None:
        raise AssertionError("the SDK was asked")

    async def send() -> Answer:
        episode = await twins.episodes.open("ledger", split="train", index=0)
        headers, body, method = request_of()
        return await ask(twins.fast, f"/e/{episode.token}/mcp", headers, body, method)

    monkeypatch.setattr(twins.fast._hosting, "handle", never)
    assert twins.runner.run(send())[0] == 200


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
places = st.sampled_from(
    [
        ("id",), ("jsonrpc",), ("method",), ("params",), ("params", "name"), ("params", "arguments"),
        ("params", "arguments", "word"), ("params", "arguments", "times"), ("params", "arguments", "other"),
        ("params", "_meta"), ("params", "_meta", VERSION), ("params", "_meta", CAPABILITIES), ("params", "_meta", INFO),
        ("params", "_meta", LEVEL), ("params", "_meta", "progressToken"), ("params", "_meta", "claudecode/toolUseId"),
        ("params", "_meta", "odd"), ("params", "odd"), ("odd",), ("params", "_meta", CAPABILITIES, "roots"),
        ("params", "_meta", INFO, "title"), ("params", "_meta", INFO, "name"),
    ]
)  # fmt: skip
header_names = st.sampled_from([*PLAIN_HEADERS, "origin", "idempotency-key", "mcp-param-word", "content-length"])
header_values = st.sampled_from([GONE, *PLAIN_HEADERS.values(), sentinel("add"), "read", "tools/list"]) | st.binary(
    max_size=6
).filter(lambda value: not set(value) & set(b"\r\n\0"))


@st.composite
def mutated(draw: st.DrawFn) -> Request:
    made = copy.deepcopy(PLAIN)
    for place, value in draw(st.lists(st.tuples(places, json_values | st.just(GONE)), max_size=2)):
        node: Any = made
        for step in place[:-1]:
            node = node.get(step) if isinstance(node, dict) else None
        if isinstance(node, dict) and value is GONE:
            node.pop(place[-1], None)
        elif isinstance(node, dict):
            node[place[-1]] = value
    body = json.dumps(made, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(body)))
        body = body[:at] + draw(st.binary(max_size=2)) + body[at + draw(st.integers(0, 2)) :]
    headers = raw_headers(PLAIN_HEADERS)
    for name, value in draw(st.lists(st.tuples(header_names, header_values), max_size=1)):
        if draw(st.booleans()) or value is GONE:
            headers = [(key, text) for key, text in headers if key != name.encode()]
        if value is not GONE:
            headers.append((name.encode(), value if isinstance(value, bytes) else value.encode()))
    return headers, body, "POST"


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(requests=st.lists(mutated(), min_size=1, max_size=3), state=st.sampled_from(["live", "live", "done", "ended"]))
def test_both_lanes_answer_generated_requests_alike(twins: Twins, requests: list[Request], state: str) -> None:
    twins.compare(requests, state=state)
