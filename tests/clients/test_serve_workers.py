"""``mcpgym serve --workers``: to whoever uses it, one server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest


@pytest.mark.slow
def test_several_workers_are_used_as_one_server_is(tmp_path: Path, process: Callable) -> None:
    variables = {
        "MCPGYM_CONTROL_SECRET": "a-secret-of-this-test-alone", "TMPDIR": str(tmp_path), "XDG_RUNTIME_DIR": "",
    }  # fmt: skip
    front = subprocess.Popen(
        [
            *(sys.executable, "-m", "mcpgym_clients", "serve", "tic-tac-toe", "--workers", "2", "--port", "0"),
            *("--config", "max_turns=7", "--log-format", "json", "--max-episodes", "50", "--name", "pod-0"),
        ],
        stderr=subprocess.PIPE, text=True, cwd=tmp_path, env={**os.environ, **variables},
    )  # fmt: skip
    try:
        assert front.stderr is not None
        said = json.loads(front.stderr.readline())
        workers = psutil.Process(front.pid).children()
        assert len(workers) == 2
        assert "a-secret-of-this-test-alone" not in json.dumps(said)
        address = re.search(r"http://127\.0\.0\.1:\d+", json.dumps(said))
        assert address
        run = [
            *("eval", "tic-tac-toe", "--policy", "expert", "-n", "12", "--config", "max_turns=7", "--no-exact"),
            *("--out", "run", "--server", address[0]),
        ]
        done = process(*run, environment=variables)
        assert done.returncode == 0, done.stdout + done.stderr
        traces = [json.loads(line) for line in (tmp_path / "run" / "traces.jsonl").read_text().splitlines()]
        assert len(traces) == 12
        assert {trace["config"]["max_turns"] for trace in traces} == {7}
        assert all(trace["score"]["receipt"] for trace in traces)
        top = process("top", "--server", address[0], "--once", "--json", environment=variables)
        figures = json.loads(top.stdout)
        assert [row["calls"] for row in figures["environments"]] == [sum(len(trace["calls"]) for trace in traces)]
        front.send_signal(signal.SIGTERM)
        log = [json.loads(line) for line in front.stderr]  # every process writes whole lines of JSON
        assert front.wait(30) == 0
        assert len([line for line in log if line.get("event") == "call" or "call" in str(line)]) >= 12
        _, alive = psutil.wait_procs(workers, timeout=10)
        assert not alive
        assert not list(tmp_path.glob("mcpgym-fleet-*"))
    finally:
        front.kill()
        front.communicate(timeout=10)


def test_what_cannot_be_is_said(command: Callable) -> None:
    code, _, said = command("serve", "tic-tac-toe", "--workers", "3", "--max-episodes", "2", "--port", "0")
    assert code == 2
    assert "3 workers cannot share a cap of 2 episodes" in said
    code, _, said = command("serve", "tic-tac-toe", "--workers", "2", "--name", "a.b", "--port", "0")
    assert (code, "'a.b' is none" in said) == (2, True)
    code, _, said = command("serve", "tic-tac-toe", "--stdio", "--workers", "2")
    assert (code, "--workers belongs to HTTP" in said) == (2, True)
    code, _, said = command("serve", "tic-tac-toe", "--name", "A_B", "--port", "0")
    assert (code, "'A_B' is none" in said) == (2, True)
