"""The control plane as HTTP: status codes, error bodies, bounds, documentation, and no secret anywhere."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from control_toys import SECRET, desk, http, served
from prometheus_client.parser import text_string_to_metric_families

from mcpgym.control_client import HttpControl
from mcpgym.control_plane.app import MAX_BODY
from mcpgym.control_plane.docs import page
from mcpgym.serving import Serving

V1 = "/control/v1"
OPEN = {"environment": "desk", "split": "train"}

Act = Callable[[aiohttp.ClientSession, Serving], Awaitable[Any]]


def ask(act: Act, secret: str | None = SECRET, **options: Any) -> Any:
    async def run() -> Any:
        async with served(**options) as (server, _), http(server, secret) as session:
            return await act(session, server)

    return asyncio.run(run())


async def sent(session: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    data = body if body is None or isinstance(body, (bytes, io.IOBase)) else json.dumps(body)
    async with session.request(method, V1 + path, data=data) as answer:
        content = await answer.read()
        assert answer.headers["mcpgym-control"] == "v1"
        return answer.status, json.loads(content) if content else None


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind", "says"),
    [
        ("GET", "/nothing", None, 404, "not_found", "/control/v1/nothing"),
        ("GET", "/episodes", None, 405, "wrong_method", "GET"),
        ("PUT", "/health", None, 405, "wrong_method", "PUT"),
        ("GET", "/health/", None, 404, "not_found", "health/"),
        ("GET", "/tasks", None, 422, "configuration", "environment: Field required; split: Field required"),
        ("GET", "/tasks?environment=desk&split=train&limit=x", None, 422, "configuration", "limit"),
        ("GET", "/tasks?environment=desk&split=train&config=[1]", None, 422, "configuration", "JSON object"),
        ("GET", "/tasks?environment=desk&split=train&config={", None, 422, "configuration", "not JSON"),
        ("GET", "/tasks?environment=desc&split=train", None, 404, "unknown_name", "did you mean 'desk'?"),
        ("POST", "/episodes", b"{", 422, "configuration", "not JSON"),
        ("POST", "/episodes", b"", 422, "configuration", "not JSON"),
        ("POST", "/episodes", b"\xff", 422, "configuration", "UTF-8"),
        ("POST", "/episodes", b"[" * 100_000, 422, "configuration", "nested too deeply"),
        ("POST", "/episodes", b'{"environment": "desk", "seed": NaN}', 422, "configuration", "NaN"),
        ("POST", "/episodes", b'{"environment": "desk", "seed": 1e999}', 422, "configuration", "too large"),
        ("POST", "/episodes", b'{"environment": "desk", "config": {"ceiling": Infinity}}', 422, "configuration", "Inf"),
        ("POST", "/episodes", {}, 422, "configuration", "environment: Field required"),
        ("POST", "/episodes", [], 422, "configuration", "the body"),
        (
            "POST",
            "/episodes",
            {**OPEN, "seed": "5"},
            422,
            "configuration",
            'seed: Input should be a valid integer, not "5"',
        ),
        ("POST", "/episodes", {**OPEN, "seed": True}, 422, "configuration", "seed"),
        ("POST", "/episodes", {**OPEN, "sead": 5}, 422, "configuration", "sead"),
        ("POST", "/episodes", {**OPEN, "seed": 666}, 500, "episode_failed", "no such beast"),
        ("POST", "/step", {}, 422, "configuration", '{"calls": [...]}'),
        ("POST", "/step", {"calls": [], "more": 1}, 422, "configuration", '{"calls": [...]}'),
        ("POST", "/step", {"calls": {}}, 422, "configuration", '{"calls": [...]}'),
        ("POST", "/step", {"calls": [5]}, 422, "configuration", "calls[0] is not an object"),
        ("POST", "/step", {"calls": [{"token": "x", "name": "y"}, {"token": "x"}]}, 422, "configuration", "calls[1]"),
        ("POST", "/step", {"calls": [{"token": "x", "name": "y", "key": 1}]}, 422, "configuration", "key is a string"),
        ("POST", "/step", {"calls": [{"token": "x", "name": "y", "args": {}}]}, 422, "configuration", "'args'"),
        ("POST", "/step", {"calls": [{"token": "x", "name": "y"}] * 4097}, 422, "configuration", "4096 at most"),
        ("POST", "/episodes/nobody/respond", {}, 422, "configuration", '{"messages": [...]}'),
        ("POST", "/episodes/nobody/respond", {"messages": None}, 422, "configuration", "list of messages"),
        ("POST", "/episodes/nobody/score", {"transcript": []}, 422, "configuration", '{"messages": [...]}'),
        ("POST", "/episodes/nobody/score", None, 404, "unknown_episode", "no episode"),
        ("GET", "/episodes/nobody", None, 404, "unknown_episode", "no episode"),
        ("DELETE", "/episodes/nobody", None, 404, "unknown_episode", "no episode"),
    ],
)
def test_what_is_wrong_is_told_with_its_status_and_a_sentence(
    method: str, path: str, body: Any, status: int, kind: str, says: str
) -> None:
    answered, value = ask(lambda session, _: sent(session, method, path, body))
    assert answered == status
    assert value["error"]["kind"] == kind
    assert says in value["error"]["message"]


def test_an_ended_episode_is_410_and_a_full_server_429() -> None:
    async def act(session: aiohttp.ClientSession, _: Serving) -> None:
        status, opened = await sent(session, "POST", "/episodes", OPEN)
        assert status == 200
        status, full = await sent(session, "POST", "/episodes", OPEN)
        assert (status, full["error"]["kind"]) == (429, "too_many_episodes")
        for _ in range(2):
            assert await sent(session, "DELETE", f"/episodes/{opened['token']}") == (204, None)
        status, gone = await sent(session, "POST", f"/episodes/{opened['token']}/score")
        assert (status, gone["error"]) == (410, {"kind": "episode_ended", "message": "this episode has ended: closed"})

    ask(act, episodes=desk(live=1))


def test_a_step_takes_calls_as_plainly_as_the_documentation_shows_them() -> None:
    async def act(session: aiohttp.ClientSession, _: Serving) -> Any:
        _, opened = await sent(session, "POST", "/episodes", OPEN)
        token = opened["token"]
        calls = [
            {"token": token, "name": "add", "arguments": {"number": 4}, "key": None},
            {"token": token, "name": "log"},
            {"token": token, "name": "log", "arguments": None},
            {"token": token, "name": "add", "arguments": "4"},
        ]
        return await sent(session, "POST", "/step", {"calls": calls})

    status, value = ask(act)
    assert status == 200
    assert value["results"][:3] == [
        {"text": "4", "is_error": False, "done": False},
        {"text": "[4]", "is_error": False, "done": False},
        {"text": "[4]", "is_error": False, "done": False},
    ]
    assert value["results"][3]["is_error"]


@pytest.mark.parametrize("secret", [None, "", "wrong-secret-0123456789", SECRET[:-1], SECRET + "x", SECRET.upper()])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/environments"), ("GET", "/metrics"), ("POST", "/step"), ("GET", "/x")]
)
def test_without_the_right_secret_all_is_401(secret: str | None, method: str, path: str) -> None:
    status, value = ask(lambda session, _: sent(session, method, path), secret)
    assert (status, value["error"]["kind"]) == (401, "secret_refused")
    assert "MCPGYM_CONTROL_SECRET" in value["error"]["message"]


def test_other_schemes_than_bearer_are_refused() -> None:
    async def act(session: aiohttp.ClientSession, _: Serving) -> list[int]:
        given = [f"Basic {SECRET}", SECRET, f"Bearer{SECRET}", f"Bearer x {SECRET}", f"bearer  {SECRET}"]
        return [(await session.get(f"{V1}/environments", headers={"authorization": header})).status for header in given]

    assert ask(act) == [401, 401, 401, 401, 200]


def test_only_health_and_the_documentation_are_open_and_tell_nothing_of_what_is_served() -> None:
    async def act(session: aiohttp.ClientSession, _: Serving) -> dict[str, str]:
        answers = {}
        for path in ("/health", "/docs", "/openapi.json"):
            async with session.get(V1 + path) as answer:
                assert answer.status == 200
                answers[path] = await answer.text()
        return answers

    answers = ask(act, None)
    assert json.loads(answers["/health"]) == {"status": "ok"}
    for text in answers.values():
        assert "desk" not in text
        assert SECRET not in text


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_bound_is_413_and_is_not_kept(chunked: bool) -> None:
    async def chunks() -> Any:
        for _ in range(MAX_BODY // 2**20 + 1):
            yield b" " * 2**20

    async def act(session: aiohttp.ClientSession, _: Serving) -> tuple[int, Any]:
        body: Any = chunks() if chunked else b" " * (MAX_BODY + 1)
        async with session.post(f"{V1}/step", data=body) as answer:
            return answer.status, await answer.json()

    status, value = ask(act)
    assert (status, value["error"]["kind"]) == (413, "body_too_large")
    assert str(MAX_BODY) in value["error"]["message"]


def test_openapi_describes_every_route_and_every_reference_resolves() -> None:
    async def act(session: aiohttp.ClientSession, _: Serving) -> Any:
        return (await sent(session, "GET", "/openapi.json"))[1]

    document = ask(act)
    operations = {f"{m.upper()} {p.removeprefix(V1)}" for p, methods in document["paths"].items() for m in methods}
    assert operations == {
        "GET /environments", "GET /tasks", "POST /episodes", "POST /step", "POST /episodes/{token}/respond",
        "GET /episodes/{token}", "GET /episodes/{token}/calls", "POST /episodes/{token}/score",
        "DELETE /episodes/{token}", "GET /health", "GET /load", "GET /metrics",
    }  # fmt: skip
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert "HTTPValidationError" not in document["components"]["schemas"], "no route answers in FastAPI's own form"
    assert references
    assert references <= document["components"]["schemas"].keys()
    assert {"OpenBody", "CallBody", "OpenedEpisode", "Score", "EpisodeStatus", "ErrorAnswer"} <= references
    posts = [methods["post"] for methods in document["paths"].values() if "post" in methods]
    assert all("requestBody" in post for post in posts)
    secured = {path for path, methods in document["paths"].items() if all(o["security"] for o in methods.values())}
    assert document["paths"].keys() - secured == {f"{V1}/health"}


def test_the_documentation_fetches_nothing_and_runs_nothing() -> None:
    async def act(session: aiohttp.ClientSession, _: Serving) -> tuple[str, str]:
        async with session.get(f"{V1}/docs") as answer:
            return await answer.text(), answer.headers["content-security-policy"]

    text, policy = ask(act)
    assert "<script" not in text
    assert "<link" not in text
    assert not re.findall(r"(?:src|href)=['\"]?(?:https?:)?//", text)
    assert policy.startswith("default-src 'none'")
    for words in ("/control/v1/episodes/{token}/score", "Open an episode", "idempotency", "Authorization: Bearer"):
        assert words in text
    anchors = set(re.findall(r"href='#([^']+)'", text))
    assert anchors
    assert anchors <= set(re.findall(r"id='([^']+)'", text))


def test_the_documentation_escapes_what_it_shows() -> None:
    info = {"title": "<b>", "version": "&", "description": "<i>"}
    text = page({"info": info, "paths": {}, "components": {"schemas": {"<u>": {"a": "<s>"}}}})
    assert not re.search("<[bius]>", text)


def test_metrics_count_what_happened_and_name_no_episode() -> None:
    async def run() -> tuple[str, list[str]]:
        async with served() as (server, control), http(server) as session:
            from mcpgym.control import Call

            tokens = [(await control.open("desk", split="train")).token for _ in range(5)]
            await control.step([Call(tokens[0], "add", {"number": 1}), Call(tokens[0], "add", {"number": -1})])
            await control.score(tokens[0])
            await control.close(tokens[0])
            await asyncio.sleep(0.25)  # the lag is sampled ten times a second
            async with session.get(f"{V1}/metrics") as answer:
                return await answer.text(), tokens

    text, tokens = asyncio.run(run())
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["mcpgym_episodes_live",] == 4
    assert found["mcpgym_episodes_opened_total",] == 5
    assert found["mcpgym_episodes_scored_total",] == 1
    assert found["mcpgym_episodes_ended_total", "closed"] == 1
    assert found["mcpgym_tool_calls_total",] == 2
    assert found["mcpgym_tool_call_errors_total",] == 1
    assert 0 <= found["mcpgym_tool_call_seconds", "0.5"] < 1
    assert 0 <= found["mcpgym_event_loop_lag_seconds",] <= found["mcpgym_event_loop_lag_worst_seconds",] < 5
    assert found["process_resident_memory_bytes",] > 1e6
    assert not any(token in text for token in [*tokens, SECRET])


def test_the_secret_is_in_no_log_metric_error_or_representation(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def act(session: aiohttp.ClientSession, server: Serving) -> list[str]:
        seen = [repr(server), repr(HttpControl(server.control_url, SECRET)), str(server)]
        for method, path, body in [
            ("GET", "/environments", None), ("GET", "/metrics", None), ("GET", "/nothing", None),
            ("POST", "/episodes", {**OPEN, "seed": 666}), ("POST", "/episodes", b"{"), ("PUT", "/step", b"x"),
        ]:  # fmt: skip
            async with session.request(
                method, V1 + path, data=body if isinstance(body, bytes) else json.dumps(body)
            ) as a:
                seen += [await a.text(), str(a.headers)]
        return seen

    seen = ask(act)
    assert caplog.records, "logging was not on; the check would mean nothing"
    assert not [text for text in [*seen, caplog.text] if SECRET in text]


def test_numbers_that_are_not_finite_become_null() -> None:
    async def act(session: aiohttp.ClientSession, server: Serving) -> Any:
        _, opened = await sent(session, "POST", "/episodes", OPEN)
        server.episodes.environments["desk"].config.__dict__["ceiling"] = float("inf")
        _, listed = await sent(session, "GET", "/environments")
        return opened["config"]["ceiling"], listed["environments"][0]["config"]["ceiling"]

    assert ask(act) == (100.0, None)
