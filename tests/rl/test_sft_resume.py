"""A fine-tuning run that is killed goes on, and ends with the same weights, bit for bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parent / "sft_runner.py"


def start(folder: Path, pause: float, kind: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(RUNNER), str(folder), str(pause), kind]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def steps_until_killed(process: subprocess.Popen[str], step: int) -> list[int]:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(int(line))
        if seen[-1] == step:
            process.kill()  # SIGKILL
    process.wait(timeout=60)
    return seen


@pytest.mark.slow
def test_case_31_a_run_killed_at_any_moment_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    kind = "streamed"
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert steps_until_killed(start(whole, 0, kind), -1) == list(range(1, 41))
    first = steps_until_killed(start(killed, 0.02, kind), 4)  # before any checkpoint
    assert first[-1] < 40
    second = steps_until_killed(start(killed, 0.02, kind), 18)  # after the second
    assert second[0] == 1 or first[-1] >= 7
    third = steps_until_killed(start(killed, 0, kind), -1)
    assert third[0] > 7
    assert third[0] % 7 == 1
    assert third[-1] == 40
    assert (killed / "end.safetensors").read_bytes() == (whole / "end.safetensors").read_bytes()
    assert (killed / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()
    assert [item.name for item in killed.iterdir() if item.name.startswith(".")] == []
