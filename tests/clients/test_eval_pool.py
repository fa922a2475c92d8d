"""``mcpgym eval`` over several servers, one of which is killed in the middle; what stands behind ``--server``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcpgym_clients.connection import addresses_in
from mcpgym_clients.failures import UsageProblem

EPISODES = 240


def bones(folder: Path) -> list[Any]:
    """Of every trace what must not depend on where it was played."""
    traces = [json.loads(line) for line in (folder / "traces.jsonl").read_text().splitlines()]
    kept = [
        (
            trace["place"], trace["task"], trace["seed"], trace["messages"], trace["score"]["components"],
            [(call["name"], call["arguments"], call["result"]) for call in trace["calls"]],
        )
        for trace in traces
    ]  # fmt: skip
    return sorted(kept, key=lambda one: int(one[0]))


@pytest.mark.slow
@pytest.mark.flaky(reruns=2)  # on a busy machine the evaluation can be over before this process gets to kill
def test_a_killed_server_costs_an_evaluation_no_episode(tmp_path: Path, process: Callable) -> None:
    variables = {
        **os.environ, "MCPGYM_CONTROL_SECRET": "a-secret-of-this-test-alone", "XDG_RUNTIME_DIR": str(tmp_path / "run"),
    }  # fmt: skip
    (tmp_path / "run").mkdir(mode=0o700)
    command = [sys.executable, "-m", "mcpgym_clients"]
    servers = [
        subprocess.Popen(
            [*command, "serve", "tic-tac-toe", "--port", "0"], stderr=subprocess.PIPE, text=True, env=variables
        )
        for _ in range(2)
    ]
    evaluation: subprocess.Popen[str] | None = None
    run = ["eval", "tic-tac-toe", "--policy", "expert", "-n", str(EPISODES), "--no-exact", "--concurrency", "8"]
    try:
        addresses = []
        for server in servers:
            assert server.stderr is not None
            said = "".join(iter(lambda lines=server.stderr: lines.readline(), "Stop with Ctrl-C.\n"))
            found = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert found
            addresses.append(found[0])
        (tmp_path / "servers").write_text("# two of them\n" + "\n".join(addresses) + "\n")
        evaluation = subprocess.Popen(
            [*command, *run, "--server", f"@{tmp_path / 'servers'}", "--out", str(tmp_path / "pool")],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables,
        )  # fmt: skip
        traces = tmp_path / "pool" / "traces.jsonl"
        while not traces.exists() or traces.read_bytes().count(b"\n") < 1:
            assert evaluation.poll() is None, evaluation.communicate()
            time.sleep(0.01)
        servers[0].kill()
        before = traces.read_bytes().count(b"\n")
        text, _ = evaluation.communicate(timeout=100)
        assert evaluation.returncode == 0, text
        assert before < EPISODES, "it was to be killed in the middle"
    finally:
        for running in [*servers, *([evaluation] if evaluation else [])]:
            running.kill()
            running.communicate(timeout=10)
    summary = json.loads((tmp_path / "pool" / "summary.json").read_text())
    assert (summary["episodes"], summary["scored"]) == (EPISODES, EPISODES)
    assert summary["run"]["reopened"] >= 1
    attempts = (tmp_path / "pool" / "attempts.jsonl").read_text().splitlines()
    assert len(attempts) == summary["run"]["reopened"]
    assert all(json.loads(line)["score"] is None for line in attempts)
    assert "were played again" in text
    alone = process(*run, "--out", "alone")
    assert alone.returncode == 0, alone.stderr
    assert bones(tmp_path / "pool") == bones(tmp_path / "alone")


def test_addresses_are_read_from_lists_and_files(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("http://a:1\n\n # a comment\nunix:/b\n")
    assert addresses_in("http://a:1") == ["http://a:1"]
    assert addresses_in(f"http://c:2, @{tmp_path / 'list'}") == ["http://c:2", "http://a:1", "unix:/b"]
    for wrong in ("", ",", f"@{tmp_path / 'nothing'}"):
        with pytest.raises(UsageProblem, match="--server"):
            addresses_in(wrong)
