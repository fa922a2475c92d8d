"""A fine-tuning run that is killed goes on, and ends with the same weights, bit for bit."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sft_runner
from sft_toys import weights

from mcpgym_rl.sft import SftStep


@pytest.mark.slow
def test_case_31_a_run_killed_at_any_moment_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    whole, steps = sft_runner.go(None)
    command = [sys.executable, sft_runner.__file__, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) == 18:  # after the second checkpoint, with four steps in the metrics beyond it
                process.kill()
                break
    assert process.returncode == -signal.SIGKILL
    seen: list[SftStep] = []
    resumed, all_steps = sft_runner.go(tmp_path, seen.append)
    assert seen[0].step > 14
    assert seen[0].step % 7 == 1
    assert seen[-1].step == 40
    assert all_steps == steps
    for name, value in weights(resumed).items():
        assert bool((value == weights(whole)[name]).all()), name
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 40
    assert sorted(item.name for item in tmp_path.iterdir()) == ["checkpoint.safetensors", "metrics.jsonl"]
