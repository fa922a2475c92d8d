"""``mcpgym demo``: it plays what it says, and would not say what is not so."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpgym_clients import connect, demo
from mcpgym_rl.traces import read_traces


@pytest.mark.slow
def test_the_demonstration(process: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = process("demo", "--games", "200", "--out", "runs/shown", timeout=110, environment={"COLUMNS": "50"})
    assert done.returncode == 0, done.stderr
    out = done.stdout
    assert out.count("agrees") == 15
    assert "disagrees" not in out
    for exact in ("43.7 %", "12.7 %", "95.6 %", "4.4 %", "100.0 %"):
        assert exact in out
    for next_step in ("claude mcp add", "mcpServers", "/mcp"):
        assert next_step in out
    for words in (["serve"], ["play", "tic-tac-toe"], ["show", "runs/shown/expert"]):
        assert f"  {connect.typed(*words)}\n" in out
    for policy in ("random", "expert"):
        traces = read_traces(tmp_path / "runs" / "shown" / policy / "traces.jsonl")
        assert len(traces) == 200
        assert all(trace.scored and trace.calls for trace in traces)
        made = json.loads((tmp_path / "runs" / "shown" / policy / "summary.json").read_text())
        assert made["run"]["lane"] == "mcp"
        for name, share in made["outcomes"].items():  # the table is what the traces say
            counted = sum(trace.score is not None and trace.score.game_outcome == name for trace in traces) / 200
            assert share == counted
            assert f"{100 * counted:.1f} %" in out
    again = process("demo", "--games", "200", "--out", "runs/shown")
    assert again.returncode == 2
    assert "not empty" in again.stderr


@pytest.mark.slow
def test_a_wrong_game_is_found_out(
    command: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Were the opponent stronger than it should be, the demonstration must fail: here it plays perfectly."""
    parts = demo.parts
    monkeypatch.setattr(demo, "parts", lambda games: parts(games)[:2])  # the policies random and expert
    monkeypatch.setattr(demo, "RANDOM_OPPONENT", demo.PERFECT_OPPONENT)
    code, out, err = command("demo", "--games", "200", "--out", "wrong")
    assert code == 1
    assert "disagrees" in out
    assert "cannot be reconciled" in err


def test_make_demo_is_the_demonstration() -> None:
    command = ["make", "--no-print-directory", "--dry-run", "demo"]
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    said = subprocess.run(
        command, cwd=Path(__file__).parents[2], env=alone, capture_output=True, text=True, check=True
    ).stdout
    assert said.splitlines()[-1] == ".venv/bin/mcpgym demo"


def test_a_client_is_told_a_command_that_exists_by_absolute_paths() -> None:
    command = connect.own_command()
    assert Path(command[0]).is_absolute()
    assert Path(command[0]).is_file()
    words = shlex.split(connect.claude_stdio("mcpgym", ["tic-tac-toe"]))
    assert words[:4] == ["claude", "mcp", "add", "mcpgym"]
    assert words[5:] == [*command, "serve", "tic-tac-toe", "--stdio"]
    entry = json.loads(connect.client_json("mcpgym"))["mcpServers"]["mcpgym"]
    assert [entry["command"], *entry["args"]] == [*command, "serve", "--stdio"]


def test_case_33_paths_with_spaces_survive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my programs"
    folder.mkdir()
    (folder / "mcpgym").write_text("")
    monkeypatch.setattr("sys.executable", str(folder / "python"))
    assert shlex.split(connect.claude_stdio("x"))[5] == str(folder / "mcpgym")
    assert json.loads(connect.client_json("x"))["mcpServers"]["x"]["command"] == str(folder / "mcpgym")


def test_a_person_is_told_commands_that_their_shell_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "mcpgym").write_text("")
    (bin_folder / "mcpgym").chmod(0o755)
    monkeypatch.setattr("sys.executable", str(bin_folder / "python"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.defpath)
    assert connect.typed("play", "it") == ".venv/bin/mcpgym play it"
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.defpath}")
    assert connect.typed("play", "it") == "mcpgym play it"


def test_the_exact_shares_add_up() -> None:
    for part in demo.parts(200):
        if part.exact:
            assert sum(part.exact.values()) == pytest.approx(1, abs=0.0011)
            assert re.fullmatch(r"[a-z-]+", part.folder)
