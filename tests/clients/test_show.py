"""``mcpgym show``: reading traces, whole, torn or hostile."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CALL = {"id": "c1", "type": "function", "function": {"name": "play", "arguments": '{"position": 4}'}}
BOARD = "You played 4. O played 0. Your turn.\nO . .\n. X .\n. . .\nX 4 · O 0 · free 1 2 3 5 6 7 8"


def line(number: int, **changed: object) -> str:
    trace = {
        "schema": "mcpgym.trace/1",
        "environment": "tic-tac-toe",
        "environment_version": "1",
        "task": f"test-{number}",
        "split": "test",
        "seed": 5,
        "config": {},
        "schema_hash": "a" * 64,
        "policy": "somebody",
        "messages": [
            {"role": "system", "content": "The rules."},
            {"role": "user", "content": "Begin."},
            {"role": "assistant", "content": "<think>The centre.</think>I play it.", "tool_calls": [CALL]},
            {"role": "tool", "content": BOARD, "tool_call_id": "c1", "name": "play"},
        ],
        "calls": [
            {"name": "play", "arguments": {"position": 4}, "result": BOARD, "is_error": False, "milliseconds": 1}
        ],
        "stop_reason": "done",
        "score": {"total": 1.2, "components": {"outcome": 1.0, "format": 1.0}, "game_outcome": "win"},
        "error": None,
        "prompt_messages": 2,
        "turns": 1,
    }
    return json.dumps(trace | changed) + "\n"


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    lost = {"total": 0.0, "components": {"outcome": 0.0}, "game_outcome": "loss"}
    failed = {"kind": "PolicyError", "message": "the endpoint is gone"}
    path = tmp_path / "run" / "traces.jsonl"
    path.parent.mkdir()
    path.write_text(
        line(0) + line(1, score=lost) + line(2, score=None, error=failed, stop_reason="policy_failed") + line(3)
    )
    return path


def test_a_trace_shows_all_that_happened(command: Callable, traces: Path) -> None:
    code, out, _ = command("show", "run", "--index", "0")
    assert code == 0
    for text in ("The rules.", "Begin.", "The centre.", "I play it.", "→ play(position=4)", "O played 0", "X", "┼"):
        assert text in out
    assert "win  score 1.2 (outcome 1, format 1)  done after 1 turns" in out
    assert "<think>" not in out
    assert "test-1" not in out


def test_all_are_shown_and_the_rules_once(command: Callable, traces: Path) -> None:
    code, out, _ = command("show", str(traces))
    assert code == 0
    assert all(f"test-{number}" in out for number in range(4))
    assert out.count("The rules.") == 1
    assert out.count("Begin.") == 4


def test_failed_shows_what_to_look_into(command: Callable, traces: Path) -> None:
    code, out, _ = command("show", "run", "--failed")
    assert code == 0
    assert "test-1" in out
    assert "PolicyError: the endpoint is gone" in out
    assert "test-0" not in out
    assert "test-3" not in out
    assert "test-2" in command("show", "run", "--failed", "-i", "-1")[1]


def test_failed_says_when_nothing_did(command: Callable, tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").write_text(line(0))
    code, out, _ = command("show", ".", "--failed")
    assert code == 0
    assert "None of the 1 traces" in out


def test_case_31_a_torn_last_line_is_said_and_the_rest_is_shown(command: Callable, traces: Path) -> None:
    with traces.open("a") as file:
        file.write(line(4)[:80])
    code, out, err = command("show", "run")
    assert code == 0
    assert "warning" in err
    assert "line 5" in err
    assert "test-3" in out
    assert "test-4" not in out


def test_the_summary_comes_first(command: Callable) -> None:
    assert command("eval", "tic-tac-toe", "-p", "random", "-n", "3", "--out", "made")[0] == 0
    code, out, _ = command("show", "made")
    assert code == 0
    assert out.index("95 % interval") < out.index("test-0")


@pytest.mark.parametrize("content", ["", "not json", "[]", '{"episodes": 3}'])
def test_a_broken_summary_hides_no_trace(command: Callable, traces: Path, content: str) -> None:
    (traces.parent / "summary.json").write_text(content)
    code, out, _ = command("show", "run")
    assert code == 0
    assert "test-3" in out


@pytest.mark.parametrize(
    ("make", "arguments", "says"),
    [
        (None, ["show", "nowhere"], "there is no nowhere"),
        (None, ["show", ".", "-i", "0", "--outcome", "nobody"], "there are no such traces"),
        (None, ["show", "run", "--order", "size"], "total"),
        (None, ["show", "run", "--failed", "--only", "errors"], "one of the two"),
        (None, ["show", "run", "--environment", "nothing"], "nothing"),
        (None, ["show", "run", "-i", "4"], "0 to 3"),
        ("", ["show", "other"], "no whole trace"),
        ("[1]\n", ["show", "other"], "line 1"),
        ('{"schema": "mcpgym.trace/9"}\n', ["show", "other"], "mcpgym.trace/9"),
    ],
)
def test_what_cannot_be_read_is_said(
    command: Callable, traces: Path, make: str | None, arguments: list[str], says: str
) -> None:
    if make is not None:
        (traces.parent.parent / "other").write_text(make)
    code, _, err = command(*arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert says in err


def test_what_a_policy_wrote_cannot_command_the_terminal(command: Callable, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x9b31m[red]markup[/red]\u202e"
    call = {"id": "c", "type": "function", "function": {"name": f"play{evil}", "arguments": evil}}
    messages = [
        {"role": "user", "content": evil},
        {
            "role": "assistant",
            "content": f"<think>{evil}</think>{evil}",
            "tool_calls": [call],
            "reasoning_content": evil,
        },
        {"role": "tool", "content": evil, "is_error": True, "tool_call_id": "c", "name": "play"},
    ]
    error = {"kind": evil, "message": evil}
    (tmp_path / "traces.jsonl").write_text(
        line(0, messages=messages, error=error, score=None, policy=evil, task=evil, stop_reason="x" + evil)
    )
    code, out, _ = command("show", ".")
    assert code == 0
    assert not set(out) & set("\x1b\x07\x9b\u202e")
    assert out.count("[red]markup[/red]") >= 8


def test_code_in_a_call_is_shown_as_lines(command: Callable, tmp_path: Path) -> None:
    given = {"path": "a.py", "text": "def f():\n\treturn '\x1b\ud800'\n", "note": "a\n→ b", "n": [1], "end": "c\n"}
    call = {"id": "c", "type": "function", "function": {"name": "write", "arguments": json.dumps(given)}}
    messages = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    (tmp_path / "traces.jsonl").write_text(line(0, messages=messages, prompt_messages=1))
    code, out, _ = command("show", ".")
    assert code == 0
    lines = [text.rstrip() for text in out.splitlines()]
    at = lines.index('→ write(path="a.py", text ↓, note ↓, n=[1], end="c\\n")')
    assert lines[at + 1 : at + 3] == ["  text:", "    def f():"]
    assert lines[at + 3].startswith("        return '\N{REPLACEMENT CHARACTER}")
    assert lines[at + 4 : at + 7] == ["  note:", "    a", "    → b"]


def test_a_pager_that_is_left_early_ends_it_quietly(tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").write_text("".join(line(number) for number in range(300)))
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpgym_clients", "show", "."],
        stdin=slave, stdout=slave, stderr=subprocess.PIPE, cwd=tmp_path,
        env={**os.environ, "PAGER": "head -n 2", "TERM": "xterm"},
    )  # fmt: skip
    os.close(slave)
    _, err = process.communicate(timeout=30)
    shown = os.read(master, 65536).decode("utf-8", "replace")
    os.close(master)
    assert process.returncode == 0
    assert err == b""
    assert "test-0" in shown
    assert "test-1" not in shown


def test_a_dumb_terminal_has_no_pager(tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").write_text(line(0) + line(1))
    master, slave = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "mcpgym_clients", "show", "."],
        stdin=slave, stdout=slave, stderr=subprocess.PIPE, cwd=tmp_path, timeout=30,
        env={**os.environ, "PAGER": "head -n 0", "TERM": "dumb"},
    )  # fmt: skip
    os.close(slave)
    shown = os.read(master, 65536).decode("utf-8", "replace")
    os.close(master)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "test-1" in shown


def test_several_runs_are_a_table(command: Callable, traces: Path, tmp_path: Path) -> None:
    assert command("eval", "tic-tac-toe", "-p", "random", "-n", "3", "--out", "made")[0] == 0
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "certificate.json").write_text("[]")
    code, out, _ = command("show", ".")
    assert code == 0
    assert all(word in out for word in ("made", "random on tic-tac-toe", "run", "somebody on tic-tac-toe", "odd"))
    assert "test-0" not in out
    code, _, err = command("show", ".", "-i", "0")
    assert code == 2
    assert "name one run: there are 2 here (made, run)" in err


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--outcome", "win"], [0, 3]),
        (["--only", "unscored"], [2]),
        (["--stop", "policy_failed"], [2]),
        (["--task", "test-3"], [3]),
        (["--search", "ENDPOINT is"], [2]),
        (["--search", "the centre"], [0, 1, 2, 3]),
        (["--search", '"position": 4'], [0, 1, 2, 3]),
        (["--order", "total"], [1, 0, 3, 2]),
        (["--order", "-total", "--failed"], [1, 2]),
        (["--outcome", "draw"], []),
    ],
)
def test_filters_choose_and_order_sorts(
    command: Callable, traces: Path, arguments: list[str], shown: list[int]
) -> None:
    code, out, _ = command("show", "run", *arguments)
    assert code == 0
    places = {number: out.find(f"test-{number}") for number in range(4)}
    found = sorted((number for number in places if places[number] >= 0), key=lambda number: places[number])
    assert found == shown
    assert shown or "None of the 4 traces is like that." in out


def test_a_losing_move_is_told_with_what_would_have_been_better(command: Callable) -> None:
    assert command("eval", "tic-tac-toe", "-p", "random", "-n", "20", "--out", "made")[0] == 0
    code, out, _ = command("show", "made", "--only", "mistakes", "--order", "-mistakes", "-i", "0")
    assert code == 0
    assert "losing move" in out
    assert re.search(r"[WD] → L  wins \d+\.\d %", out)
    assert re.search(r">\d L \d+ %", out)
    assert re.search(r"\*\d [WD] \d+ %", out)
    assert "losing move" not in command("show", "made", "--no-values")[1]
    whole = command("show", "made")[1]
    assert re.search(r"rewards\s+0\s+\d+  ━+", whole)


def test_what_an_episode_ran_under_is_shown_where_it_says_so(command: Callable, tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    conditions = {"isolation": "namespaces", "python": "3.11.2", "packages": {"numpy": "2.1.0"}, "note": "\x1b[31mred"}
    path.write_text(line(0) + line(1, conditions=conditions))
    code, shown, _ = command("show", str(path))
    assert code == 0
    assert shown.count("ran under") == 1
    assert "ran under isolation namespaces; python 3.11.2; packages numpy 2.1.0" in shown
    assert "\x1b[31mred" not in shown
