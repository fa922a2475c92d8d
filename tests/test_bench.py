"""The benchmark runs, and counts what it says it counts. (Its figures are no test: machines differ.)"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_benchmark_measures_every_lane(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.bench", "--quick", "--json", str(figures)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    made = json.loads(figures.read_text())
    assert {"bare", "fast", "sdk"} <= made["ratio_to_bare"].keys()
    assert made["ratio_to_bare"]["bare"] == 1.0
    for group in made.values():
        assert all(value > 0 for value in group.values()), made
