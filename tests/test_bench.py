"""The benchmarks run, and count what they say they count. (Their figures are no test: machines differ.)"""

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


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_training_benchmark_measures_both_sides(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.bench.training", "--quick", "--json", str(figures)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=590)
    assert done.returncode == 0, done.stderr
    made = json.loads(figures.read_text())
    games, step = made["games"], made["step"]
    for who in ("ours", "ours_all_tokens", "trl_rollouts", "trl"):
        assert step[who]["seconds"] > step[who]["playing"] > 0 < step[who]["learning"], who
        assert step[who]["turns"] >= games, who
    for who in ("ours_all_tokens", "trl_rollouts", "trl"):
        assert step[who]["trained_tokens"] >= 2 * games, who
    assert step["trl"]["generating"] < step["trl"]["playing"]
    for who in ("ours", "trl"):
        ends = step["played"][who]
        assert sum(ends.values()) == games, "one step is counted"
        assert sum(ends.values()) > ends.get("unfinished", 0), "some games came to their end"
        assert step["played"][f"{who}_calls"] >= games, "tools were called"
    decoded = made["decoding"]
    assert decoded["games"] == made["loop"]["games"] == games
    assert min(decoded["ours"], decoded["theirs"], decoded["our_step"], decoded["their_step"]) > 0
    assert made["loop"]["microseconds_a_turn"] > 0


@pytest.mark.slow
def test_the_sandbox_benchmark_measures_every_part(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.bench.sandbox", "--quick", "--json", str(figures)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=110)
    if "no sandbox of this machine's own" in done.stderr:
        pytest.skip("neither namespaces nor Landlock can be had here")
    assert done.returncode == 0, done.stderr
    made = json.loads(figures.read_text())
    assert made["tier"] in ("namespaces", "landlock")
    assert made["open"]["bare"]["pool_ms"] < made["open"]["bare"]["cold_ms"]
    assert 0 < made["call"]["ours_p50_ms"] <= made["call"]["ours_p99_ms"]
    assert min(made["call"]["process_p50_ms"], made["call"]["ours_over_process"]) > 0
    assert made["many"]["sessions"] > 1 < made["many"]["calls_per_second"]
    assert 0 <= made["stop"]["interrupted_after_s"] < made["stop"]["killed_after_s"]


@pytest.mark.slow
def test_the_encyclopedia_benchmark_measures_every_engine_that_is_installed(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    engines = [word for engine in ("fts5", "tantivy", "plain FTS5") for word in ("--engine", engine)]
    command = [sys.executable, "-m", "tests.bench.wiki", "--quick", *engines, "--json", str(figures)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    rows = json.loads(figures.read_text())
    assert {row["engine"] for row in rows} >= {"fts5", "plain FTS5"}
    for row in rows:
        assert row["build"]["disk"] > 100_000
        assert 0 < row["search"]["p50"] <= row["search"]["p99"] <= row["search"]["most"]


@pytest.mark.slow
def test_the_telemetry_benchmark_measures_every_state(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.bench.telemetry", "--quick", "--json", str(figures)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    made = json.loads(figures.read_text())
    assert len(made) == 4
    for what, row in made.items():
        looks = set() if "rollout" in what else {"looks", "looks / absent"}
        assert row.keys() == {"absent", "off", "on", "off / absent", "on / off"} | looks
        assert row.get("looks / absent", 0) < 0.01
        assert min(row["absent"], row["off"], row["on"]) > 0


@pytest.mark.slow
def test_the_fleet_benchmark_measures_front_and_workers(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.bench.fleet", "--quick", "--json", str(figures)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    made = json.loads(figures.read_text())
    assert made["workers"].keys() == {"1", "2", "4"}
    for row in made["workers"].values():
        assert min(row.values()) > 0
    assert made["projected_calls_per_second"]["1 ms"].keys() == {"plain", "1", "2", "4", "8", "16"}
