"""What every bundled environment does is as the golden files say, and the golden files say enough."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mcpgym.registry import environment_names
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.traces import read_traces

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.jsonl"))
LONG = {"long-context", "python-sandbox", "wiki-search"}
"""They take several seconds of processor time to play."""


def golden(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.golden", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=110, encoding="utf-8")


def test_every_golden_file_is_what_is_played_now() -> None:
    done = golden("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_golden_file_that_is_wrong_missing_or_too_many_is_found_and_mended(tmp_path: Path) -> None:
    copy = tmp_path / "tests" / "golden"
    shutil.copytree(GOLDEN, copy)
    traces, missing = copy / "tic-tac-toe.jsonl", copy / "playthroughs" / "double-check.txt"
    before = traces.read_text("utf-8")
    traces.write_text(before.replace("O played 4", "O played 5", 1), "utf-8")
    missing.unlink()
    extra = copy / "no-such-environment.jsonl"
    extra.write_text("{}\n")
    names = ["double-check", "tic-tac-toe", "no-such-environment"]  # the others' take a quarter of a minute
    done = golden("--check", *names, folder=tmp_path)
    assert done.returncode == 1
    assert "3 golden files differ" in done.stderr
    for path in (traces, missing, extra):
        assert str(path.relative_to(tmp_path)) in done.stdout
    assert golden(*names, folder=tmp_path).returncode == 0
    assert (traces.read_text("utf-8"), missing.exists(), extra.exists()) == (before, True, False)


@pytest.mark.parametrize("lane", ["control", "mcp"])
def test_golden_traces_replay_equal(lane: str, tmp_path: Path) -> None:
    """Over MCP all of them; without, where they are played for the golden files anyway, those that take no time."""
    report = tmp_path / "report.json"
    files = [path for path in sorted(GOLDEN.glob("*.jsonl")) if lane == "mcp" or path.stem not in LONG]
    command = [sys.executable, "-m", "mcpgym_clients", "replay", *map(str, files)]
    done = subprocess.run(
        [*command, "--lane", lane, "--json", str(report)], capture_output=True, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads(report.read_text())
    assert made["equal"]
    assert made["traces"] == sum(len(read_traces(path)) for path in files) > 50


def test_every_installed_environment_has_golden_files() -> None:
    assert set(environment_names()) - {"reasoning-gym", "textarena"} == set(NAMES) - {"reverse-text+tic-tac-toe"}
    assert sorted(path.stem for path in GOLDEN.glob("playthroughs/*.txt")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_golden_traces_show_more_than_good_play(name: str) -> None:
    traces = read_traces(GOLDEN / f"{name}.jsonl")
    answers = [message for trace in traces for message in trace.messages if message["role"] == "tool"]
    assert any("there is no tool" in message["content"] for message in answers)
    assert {trace.stop_reason for trace in traces} >= {StopReason.TRUNCATED, StopReason.POLICY_FAILED}
    assert len({trace.policy for trace in traces}) >= 5
    assert len({json.dumps(trace.config) for trace in traces}) >= 2, "only one configuration is played"
    assert [trace.place for trace in traces] == list(range(len(traces)))
    text = (GOLDEN / "playthroughs" / f"{name}.txt").read_text("utf-8")
    assert "hidden: ended" in text
    assert "tool (error):" in text
