"""Trace files: what is written can be read, killed runs lose no finished line, and the documentation is true."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import rl_toys
from hypothesis import given
from hypothesis import strategies as st

from mcpgym.errors import ConfigurationError
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.policy import Tokens, Turn, Usage
from mcpgym_rl.rollout import rollout
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import Trace, TraceScore, TraceWriter, read_traces

DOCUMENT = Path(__file__).parents[2] / "docs" / "traces.md"


def make(*turns: Any, **options: Any) -> Trace:
    lane = ControlLane(rl_toys.control())
    return asyncio.run(rollout(ScriptedPolicy(turns), lane, environment="counter", split="train", **options))


ADD = {"name": "add", "arguments": {"amount": 3}}
DONE = make(ADD)
FAILED = make({"name": "add", "arguments": {"amount": -1}})
LOCAL = make(
    replace(Turn({"role": "assistant", "content": "é\u2028"}), usage=Usage(2, 1), tokens=Tokens([5], [True], [-0.5]))
)
SIGNED = replace(DONE, score=TraceScore(1.0, {"reached": 1.0, "spoke": None}, "win", {"signature": "x"}))


@pytest.mark.parametrize("trace", [DONE, FAILED, LOCAL, SIGNED], ids=["done", "failed", "local", "signed"])
def test_a_trace_is_read_as_it_was_written(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "traces.jsonl"
    with TraceWriter(path) as writer:
        writer.write(trace)
    assert path.read_bytes().count(b"\n") == 1, "one rollout is one line, whatever separators its texts hold"
    traces = read_traces(path)
    assert traces == [trace]
    assert traces.torn == ""
    assert traces[0].fingerprint == trace.fingerprint


def test_the_names_in_a_file_are_those_of_the_format() -> None:
    written = json.loads(LOCAL.to_json())
    assert {
        "schema", "environment", "environment_version", "task", "split", "seed", "config", "schema_hash", "policy",
        "messages", "calls", "stop_reason", "score", "error", "tokens",
    } <= set(written)  # fmt: skip
    assert written["schema"] == "mcpgym.trace/1"
    assert set(written["tokens"]) == {"ids", "mask", "logprobs"}
    assert set(json.loads(DONE.to_json())["calls"][0]) == {"name", "arguments", "result", "is_error", "milliseconds"}
    assert set(json.loads(SIGNED.to_json())["score"]) == {"total", "components", "game_outcome", "receipt"}
    assert json.loads(FAILED.to_json())["score"] is None
    assert set(json.loads(FAILED.to_json())["error"]) == {"kind", "message"}


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_case_25_no_number_that_is_not_finite_gets_into_a_file(number: float, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    with TraceWriter(path) as writer:
        writer.write(DONE)
        with pytest.raises(ValueError, match="JSON compliant"):
            writer.write(replace(DONE, score=TraceScore(number)))
    assert len(read_traces(path)) == 1


@given(st.integers(min_value=0))
def test_case_31_a_file_cut_anywhere_keeps_every_whole_line_and_says_that_one_is_torn(where: int) -> None:
    lines = [DONE.to_json().encode() + b"\n", FAILED.to_json().encode() + b"\n"]
    whole = b"".join(lines)
    cut = whole[: where % (len(whole) + 1)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "traces.jsonl"
        path.write_bytes(cut)
        traces = read_traces(path)
        complete = cut.count(b"\n") + (cut in (lines[0][:-1], whole[:-1]))  # whole but for its newline
        assert len(traces) == complete
        assert bool(traces.torn) == (not cut.endswith(b"\n") and bool(cut) and complete == cut.count(b"\n"))
        with TraceWriter(path) as writer:  # the next run goes on in the same file
            writer.write(LOCAL)
        assert read_traces(path) == [*traces, LOCAL]
        assert read_traces(path).torn == ""


def test_a_torn_line_longer_than_a_block_is_cut_off_too(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(DONE.to_json().encode() + b'\n{"schema": "' + b"x" * 300_000)
    with TraceWriter(path, sync=True) as writer:
        writer.write(FAILED)
    assert read_traces(path) == [DONE, FAILED]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "line 2 is no JSON"),
        ("[]", "line 2 is no trace: a trace is a JSON object"),
        ('{"schema": "mcpgym.trace/9"}', "its schema is 'mcpgym.trace/9'; this version reads 'mcpgym.trace/1'"),
        (json.dumps({**DONE.to_dict(), "seed": "7"}), "'seed' cannot be \"7\""),
        (json.dumps({**DONE.to_dict(), "seed": True}), "'seed' cannot be true"),
        (json.dumps({**DONE.to_dict(), "calls": [{"name": "x"}]}), "'calls' is not as it should be"),
        (json.dumps({**DONE.to_dict(), "score": 1.0}), "'score' cannot be 1.0"),
        (json.dumps({**DONE.to_dict(), "score": {"total": True}}), "score.total cannot be True"),
        (json.dumps({**DONE.to_dict(), "score": {"total": 10**400}}), "score.total cannot be "),
        (json.dumps({**DONE.to_dict(), "messages": [None]}), "messages[0] is NoneType"),
        (json.dumps({key: value for key, value in DONE.to_dict().items() if key != "task"}), "'task' is missing"),
        (DONE.to_json().replace('"total":1.0', '"total":NaN'), "NaN is not JSON"),
    ],
)
def test_a_line_that_is_no_trace_is_named_with_what_is_wrong(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text(f"{DONE.to_json()}\n{line}\n{DONE.to_json()}\n")
    with pytest.raises(ConfigurationError) as error:
        read_traces(path)
    assert words in str(error.value)


def test_a_file_that_is_not_there_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read traces"):
        read_traces(tmp_path / "none.jsonl")


def test_fields_of_later_versions_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    later = DONE.to_dict() | {"colour": "red"}
    later["score"]["ink"] = 1
    later["calls"][0]["ink"] = 1
    path.write_text(json.dumps(later) + "\n")
    assert read_traces(path) == [DONE]


def append(path: Path, count: int) -> None:
    with TraceWriter(path) as writer:
        for _ in range(count):
            writer.write(DONE)


def test_lines_of_two_writers_are_never_mixed(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.touch()
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append, args=(path, 200)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert len(read_traces(path)) == 400


def test_a_disk_that_takes_half_a_line_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = TraceWriter(tmp_path / "traces.jsonl")
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, data: real(file, data[:10]))
    with pytest.raises(OSError, match="only 10 of"):
        writer.write(DONE)
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="has been closed"):
        writer.write(DONE)


# The documentation.


def documented() -> Trace:
    """The rollout whose trace docs/traces.md shows."""
    turns = [
        {"text": "First half.", "name": "add", "arguments": {"amount": 1}},
        {"name": "add", "arguments": {"amount": -1}},
        {"name": "add", "arguments": {"amount": 2}},
    ]
    trace = make(*turns, index=7, seed=3)
    calls = [replace(call, milliseconds=0.02) for call in trace.calls]
    return replace(trace, calls=calls, seconds=0.001)


def test_the_example_in_the_documentation_is_a_real_trace() -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert json.loads(shown) == documented().to_dict(), json.dumps(documented().to_dict(), indent=2)
    assert Trace.from_dict(json.loads(shown)) == documented()


def test_the_documentation_names_every_field_and_every_stop_reason() -> None:
    text = DOCUMENT.read_text("utf-8")
    for item in fields(Trace):
        assert f"| `{item.name}` |" in text, item.name
    for reason in StopReason:
        assert f"| `{reason}` | {'yes' if reason.scored else 'no'} |" in text, reason
