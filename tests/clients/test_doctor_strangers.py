"""What a stranger's server says is data to the doctor: it neither fetches, nor hangs, nor marks up a report."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from doctor_toys import serving_toy
from rich.console import Console

from mcpgym_clients.doctor.checks.contents import _misfit
from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.examination import examine
from mcpgym_clients.doctor.findings import LONGEST_EVIDENCE, Examination, Outcome
from mcpgym_clients.doctor.rendering import markdown, render
from mcpgym_clients.doctor.subjects import HttpSubject
from mcpgym_clients.doctor.wire import Answer, read

EVIL = "\x1b[31m<script>alert(1)</script> [red]x[/red] | `a` \u202e **b** ](javascript:x)"


def hostile() -> Examination:
    made = Examination(EVIL, "http", "2026-01-01T00:00:00+00:00", {"server": EVIL})
    outcome = Outcome("eras", "Does it?")
    outcome.fail(EVIL, EVIL)
    outcome.warn("x" * 10_000_000, "Less.")
    made.outcomes.append(outcome)
    return made


def test_a_report_holds_no_markup_of_a_server() -> None:
    text = markdown(hostile())
    assert "<script" not in text.replace("\\<", "")
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "](" not in text.replace("\\]", "")
    assert len(text) < 20 * LONGEST_EVIDENCE


def test_a_terminal_is_not_commanded() -> None:
    console = Console(record=True, width=100, file=None, quiet=False)
    with console.capture() as shown:
        render(console, hostile())
    assert "\x1b[31m<script>" not in shown.get()
    assert "[red]x[/red]" in shown.get()
    json.dumps(hostile().as_json())


@pytest.mark.parametrize(
    ("schema", "value", "says"),
    [
        ({"type": "object", "required": ["a"]}, {}, "required"),
        ({"$ref": "http://192.0.2.1/schema"}, {}, ""),
        ({"$id": "http://192.0.2.1/", "$ref": "#/nowhere"}, {}, "wrong"),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, {"a": "a" * 40 + "!"}, ""),
        ({"type": 4}, {}, "wrong"),
    ],
)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_a_strangers_schema_neither_fetches_nor_hangs(schema: Any, value: Any, says: str) -> None:
    started = time.monotonic()
    assert says in _misfit(value, schema)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    "body", [b"", b"[" * 100_000, b"null", b"[]", b'{"result": 4}', b'{"error": "no"}', b"\xff\xfe"]
)
def test_any_answer_is_read_without_an_exception(body: bytes) -> None:
    answer = read(body, 200, {}, 0.0)
    assert answer.problem
    assert not answer.answered
    assert isinstance(answer.seen, str)
    assert isinstance(answer.shown(), str)


LOOP = {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}
HALF = {"type": "object", "required": "all", "properties": [1]}
ODD: list[Any] = [
    {"tools": "none"},
    {"tools": [4, None, {"name": 4}, {"name": "x", "inputSchema": 4, "annotations": []}]},
    {"tools": [{"name": "x" * 300, "description": ["a"], "inputSchema": LOOP}]},
    {"tools": [{"name": "a\u0000b ü", "inputSchema": HALF}], "nextCursor": "again"},
    {"tools": [], "nextCursor": 5, "content": [4, {"type": 5}], "structuredContent": {"a": None}},
]


@pytest.mark.parametrize("result", ODD, ids=range(len(ODD)))
def test_a_server_that_answers_everything_alike_is_examined_to_the_end(result: Any) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while (part := await receive()).get("more_body"):
            body += part["body"]
        body += part.get("body", b"")
        try:
            number = json.loads(body).get("id")
        except (ValueError, AttributeError, RecursionError):
            number = None
        said = {"protocolVersion": "2025-11-25", "serverInfo": "me", "capabilities": [], **result}
        answer = json.dumps({"jsonrpc": "2.0", "id": number, "result": said}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def work() -> Examination:
        async with serving_toy(app) as base:
            return await examine(Context(HttpSubject(f"{base}/mcp", {}, 2.0), quick=True, sessions=8))

    made = asyncio.run(work())
    assert {outcome.name for outcome in made.outcomes} >= {"schemas", "isolation", "leaks"}
    assert made.verdict in ("warn", "fail")
    assert not [outcome for outcome in made.outcomes if "stumbled" in str(outcome.findings)]
    markdown(made)


def test_equal_answers_are_equal_and_others_are_not() -> None:
    one = Answer(result={"content": [{"type": "text", "text": "a"}], "_meta": {"at": 1}})
    assert one.seen == Answer(result={"content": [{"type": "text", "text": "a"}], "_meta": {"at": 2}}, seconds=3).seen
    assert one.seen != Answer(result={"content": [{"type": "text", "text": "a"}], "isError": True}).seen
    assert one.seen != Answer(error={"code": 1, "message": "a"}).seen
