"""Runs are found below a path and read, whatever else lies there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.runs import find_runs, load_run
from mcpgym_rl.traces import Trace, TraceScore, TraceWriter


def trace(place: int, total: float | None = 1.0, **changed: Any) -> Trace:
    values: dict[str, Any] = {
        "environment": "game",
        "environment_version": "1",
        "task": f"test-{place}",
        "split": "test",
        "seed": 0,
        "config": {},
        "schema_hash": "a" * 64,
        "policy": "p",
        "messages": [],
        "calls": [],
        "stop_reason": "done",
        "score": None if total is None else TraceScore(total),
        "place": place,
    }
    return Trace(**(values | changed))


def write(folder: Path, *traces: Trace, summary: str | None = None, name: str = "traces.jsonl") -> Path:
    with TraceWriter(folder / name) as writer:
        for item in traces:
            writer.write(item)
    if summary is not None:
        (folder / "summary.json").write_text(summary)
    return folder


def test_a_folder_and_its_file_are_the_same_run(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", trace(1), trace(0), summary=json.dumps({"run": {"n": 2}}))
    for path in (folder, folder / "traces.jsonl", str(folder)):
        run = load_run(path)
        assert run.folder == folder
        assert [item.place for item in run.traces] == [0, 1]
        assert run.about == {"n": 2}


@pytest.mark.parametrize("summary", [None, "", "[1]", "{", '{"run": 3}', "[" * 100_000, '{"a": "\ud800'])
def test_a_summary_that_cannot_be_read_hides_no_trace(tmp_path: Path, summary: str | None) -> None:
    folder = write(tmp_path / "a", trace(0))
    if summary is not None:
        (folder / "summary.json").write_bytes(summary.encode("utf-8", "surrogatepass"))
    run = load_run(folder)
    assert len(run.traces) == 1
    assert run.about == {}


def test_traces_under_another_name_have_no_summary(tmp_path: Path) -> None:
    folder = write(tmp_path, trace(0), summary='{"run": {}}', name="games.jsonl")
    assert load_run(folder / "games.jsonl").summary is None


def test_an_episode_that_was_played_again_counts_once_with_its_score(tmp_path: Path) -> None:
    folder = write(tmp_path, trace(0, None), trace(1, 0.5), trace(0, 1.0), trace(1, None), trace(2, None))
    run = load_run(folder)
    assert [(item.place, item.scored) for item in run.traces] == [(0, True), (1, True), (2, False)]


def test_files_put_together_lose_no_episode(tmp_path: Path) -> None:
    folder = write(tmp_path, trace(0), trace(0, task="test-9"), trace(0, seed=1), trace(0, environment="other"))
    assert len(load_run(folder).traces) == 4


def test_a_torn_line_is_said(tmp_path: Path) -> None:
    folder = write(tmp_path, trace(0))
    with (folder / "traces.jsonl").open("a") as file:
        file.write('{"schema": "mcpgym')
    run = load_run(folder)
    assert len(run.traces) == 1
    assert "incomplete" in run.torn


def test_runs_are_found_below_in_order_and_once(tmp_path: Path) -> None:
    for name in ("b/deep/er", "a", ".hidden", "b"):
        write(tmp_path / name, trace(0))
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path)
    loose = write(tmp_path / "loose", trace(0), name="games.jsonl") / "games.jsonl"
    a, b, deep = tmp_path / "a", tmp_path / "b", tmp_path / "b/deep/er"
    assert find_runs([tmp_path]) == [a, b, deep]
    assert find_runs([b, loose, a, b]) == [b, deep, loose, a]
    assert find_runs([]) == []
    with pytest.raises(UsageProblem, match="nowhere"):
        find_runs([tmp_path / "nowhere"])


def test_a_path_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match="no traces"):
        load_run(tmp_path)
