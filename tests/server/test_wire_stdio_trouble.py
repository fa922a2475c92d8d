"""Odd lines and clients over stdio: each call is answered, and a client that goes away leaves no traceback."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_wire_stdio import begin, greet, line

from mcpgym.wire.stdio import paired


def call(number: int, name: str, arguments: dict[str, Any]) -> bytes:
    return line("tools/call", {"name": name, "arguments": arguments}, number)


@pytest.mark.parametrize(
    "text",
    ["plain", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\\\\ud800", '\\\\\\\\ud800 \\n \\" \\u00e9', "é😀"],
)
def test_a_line_without_half_characters_stays_as_it_is(text: str) -> None:
    assert paired(f'"{text}"') == f'"{text}"'


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("\\ud800", "\ufffd"),
        ("\\uDFFFx", "\ufffdx"),
        ("\\ud83d\\ud83d\\ude00", "\ufffd\U0001f600"),
        ("\\\\\\ud800", "\\\ufffd"),
        ("\\ude00\\ud83d", "\ufffd\ufffd"),
    ],
)
def test_half_a_character_becomes_a_replacement(text: str, becomes: str) -> None:
    assert json.loads(paired(f'"{text}"')) == becomes


def test_case_16_a_call_with_half_a_character_is_answered() -> None:
    process = begin()
    assert process.stdin is not None
    assert process.stdout is not None
    greet(process)
    for junk in (b"hello\n", b"\xff\n", b"\n", b"[]\n", b"[" * 100_000 + b"\n"):
        process.stdin.write(junk)
    process.stdin.write(call(1, "add", {"word": "a\ud800b"}) + call(2, "add", {"word": "c"}))
    process.stdin.flush()
    junk_answers = [json.loads(process.stdout.readline()) for _ in range(4)]
    assert [answer["error"]["code"] for answer in junk_answers] == [-32700, -32700, -32600, -32700]
    assert {answer["id"] for answer in junk_answers} == {None}
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [answer["result"]["content"][0]["text"] for answer in answers] == ["a\ufffdb", "a\ufffdb c"]
    process.communicate(timeout=10)


def test_a_call_nested_too_deep_to_be_read_is_answered_under_its_id() -> None:
    process = begin()
    assert process.stdin is not None
    assert process.stdout is not None
    greet(process)
    deep = b"[" * 500 + b"]" * 500
    params = b'{"name": "add", "arguments": {"word": ' + deep + b"}}"
    process.stdin.write(b'{"jsonrpc": "2.0", "id": "x7", "method": "tools/call", "params": ' + params + b"}\n")
    process.stdin.write(call(2, "add", {"word": "c"}))
    process.stdin.flush()
    refused, added = (json.loads(process.stdout.readline()) for _ in range(2))
    assert refused["id"] == "x7"
    assert "nested too deep" in refused["error"]["message"]
    assert added["result"]["content"][0]["text"] == "c"
    process.communicate(timeout=10)


def test_case_9_a_client_that_stops_reading_leaves_no_traceback() -> None:
    process = begin()
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    greet(process)
    process.stdout.close()
    process.stdin.write(call(1, "read", {}))
    process.stdin.flush()
    said = process.stderr.read().decode()
    assert process.wait(10) == 0
    assert "Traceback" not in said
    assert "Error" not in said
    process.stdin.close()
