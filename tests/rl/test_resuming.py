"""What is kept of a run that goes on, what is moved, and that no crash in between loses or doubles a line."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rl_toys
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpgym.errors import ConfigurationError
from mcpgym_rl import locks
from mcpgym_rl.collect import Collection, Collector
from mcpgym_rl.files import sweep, write_atomically
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.locks import LOCK, locked
from mcpgym_rl.policies.script import ScriptedPolicy
from mcpgym_rl.resuming import ATTEMPTS, TRACES, attempts, finished, settle
from mcpgym_rl.rollout import rollout
from mcpgym_rl.syncing import BackgroundSync
from mcpgym_rl.traces import Trace, TraceError, TraceScore, TraceWriter, read_traces

BASE = asyncio.run(
    rollout(ScriptedPolicy(["x"]), ControlLane(rl_toys.control()), environment="counter", split="train", seed=1)
)


def made(place: int, scored: bool, number: int) -> Trace:
    error = None if scored else TraceError("Cancelled", "stopped")
    score = TraceScore(float(number)) if scored else None
    return replace(BASE, place=place, score=score, error=error, stop_reason="done" if scored else "cancelled")


def written(folder: Path, traces: list[Trace], torn: bool = False) -> None:
    with TraceWriter(folder / TRACES) as writer:
        for trace in traces:
            writer.write(trace)
    if torn:
        with (folder / TRACES).open("ab") as file:
            file.write(b'{"schema": "mcpgym.tr')


RUNS = st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=8)


@settings(deadline=None, max_examples=40)
@given(run=RUNS, torn=st.booleans())
def test_one_line_with_a_score_stays_for_each_place_and_every_other_is_moved(
    run: list[tuple[int, bool]], torn: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("run")
    traces = [made(place, scored, number) for number, (place, scored) in enumerate(run)]
    written(folder, traces, torn)
    first: dict[int, Trace] = {}
    for trace in traces:
        if trace.scored:
            first.setdefault(trace.place, trace)
    kept = [trace for trace in traces if first.get(trace.place) is trace]
    assert list(finished(folder)) == kept
    settle(folder)
    assert list(finished(folder)) == list(read_traces(folder / TRACES)) == kept
    moved = [trace for trace in traces if first.get(trace.place) is not trace]
    distinct = {trace.to_json(): trace for trace in moved}
    assert {trace.to_json() for trace in attempts(folder)} == set(distinct)
    before = {item.name: item.read_bytes() for item in folder.iterdir()}
    settle(folder)
    assert {item.name: item.read_bytes() for item in folder.iterdir()} == before


class Crash(BaseException):
    """The process is gone."""


@pytest.mark.parametrize("half", [False, True], ids=["before a step", "in the middle of a write"])
def test_case_31_a_crash_at_any_step_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: bool
) -> None:
    traces = [replace(made(place, place % 3 != 1, place), seconds=float(place)) for place in range(9)]
    real = {name: getattr(os, name) for name in ("write", "fsync", "ftruncate", "replace")}
    for step in itertools.count():
        folder = tmp_path / str(step)
        folder.mkdir()
        written(folder, traces, torn=True)
        count = -1

        def crashing(name: str) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal count
                count += 1
                if count == step:  # noqa: B023  # it is called in this turn of the loop
                    if half and name == "write":
                        real["write"](arguments[0], arguments[1][: len(arguments[1]) // 2])
                    raise Crash
                return real[name](*arguments, **options)

            return call

        with monkeypatch.context() as patch:
            for name in real:
                patch.setattr(os, name, crashing(name))
            patch.setattr(BackgroundSync, "_work", lambda self: None)  # so that the steps are always the same
            try:
                settle(folder)
                crashed = False
            except Crash:
                crashed = True
        settle(folder)
        assert [trace.place for trace in read_traces(folder / TRACES)] == [0, 2, 3, 5, 6, 8], step
        assert sorted(trace.place for trace in attempts(folder)) == [1, 4, 7], step
        if not crashed:
            assert step > 10, "there were steps to crash at"
            return


def test_a_folder_is_held_by_one_process_at_a_time(tmp_path: Path) -> None:
    with locked(tmp_path):
        with pytest.raises(ConfigurationError, match="another process is at work"), locked(tmp_path):
            pass
        assert (tmp_path / LOCK).exists(), "the one that was refused leaves it alone"
        with pytest.raises(ConfigurationError, match="another process is at work"), locked(tmp_path):
            pass
    assert not (tmp_path / LOCK).exists()
    with locked(tmp_path):
        pass


def test_a_lock_on_a_file_that_its_last_holder_removed_holds_nobody_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the file and locking it, the process that held it may end."""
    real, calls = locks._lock, 0

    def late(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            (tmp_path / LOCK).unlink()
        real(handle)

    monkeypatch.setattr(locks, "_lock", late)
    with locked(tmp_path):
        assert calls == 2
        with pytest.raises(ConfigurationError), locked(tmp_path):
            pass


def hold(folder: Path, ready: Any) -> None:
    with locked(folder):
        ready.set()
        time.sleep(60)


def test_a_lock_is_free_when_its_holder_is_killed(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=hold, args=(tmp_path, ready))
    process.start()
    assert ready.wait(30)
    with pytest.raises(ConfigurationError), locked(tmp_path):
        pass
    process.kill()
    process.join()
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.flaky(reruns=1)  # it measures time
def test_lines_reach_the_disk_within_their_time_and_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    path = tmp_path / TRACES
    monkeypatch.setattr(os, "fsync", lambda file: (time.sleep(0.05), synced.append(path.stat().st_size)))
    with TraceWriter(path, sync=0.1) as writer:
        started = time.monotonic()
        for _ in range(200):
            writer.write(BASE)
        assert time.monotonic() - started < 5.0, "200 waits for the disk would have taken 10 s"
        size = path.stat().st_size
        deadline = time.monotonic() + 30
        while (not synced or synced[-1] != size) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert synced[-1] == size, "without a further line, and before it is closed"
        assert len(synced) < 20
        writer.write(BASE)
    assert synced[-1] == path.stat().st_size, "closing waits"


def test_a_disk_that_fails_later_is_an_error_of_the_next_line_or_of_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: int) -> None:
        raise OSError(5, "Input/output error")

    writer = TraceWriter(tmp_path / TRACES, sync=0.01)
    monkeypatch.setattr(os, "fsync", fail)
    writer.write(BASE)
    time.sleep(0.1)
    with pytest.raises(OSError, match="Input/output"):
        writer.write(BASE)
    with pytest.raises(OSError, match="Input/output"):
        writer.close()
    writer.close()


def test_after_half_a_line_the_next_one_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / TRACES
    real = os.write
    with TraceWriter(path) as writer:
        writer.write(made(0, True, 0))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", lambda file, data: real(file, data[:10]))
            with pytest.raises(OSError, match="only 10 of"):
                writer.write(made(1, True, 1))
        writer.write(made(2, True, 2))
    assert [trace.place for trace in read_traces(path)] == [0, 2]


def test_what_a_killed_process_left_half_written_is_removed_and_nothing_else(tmp_path: Path) -> None:
    write_atomically(tmp_path / "run.json", {"a": 1})
    for name in (".run.json.x1y2", ".summary.json.abc", ".receipts.jsonl.k"):
        (tmp_path / name).write_text("half")
    (tmp_path / ".mine").write_text("mine")
    sweep(tmp_path)
    assert sorted(item.name for item in tmp_path.iterdir()) == [".mine", "run.json"]


def test_a_collection_keeps_what_it_plays_again(tmp_path: Path) -> None:
    wanted = Collection("counter", "script", "train", 50, 6)
    add = {"name": "add", "arguments": {"amount": 3}}

    async def play(policy: ScriptedPolicy) -> Collector:
        collector = Collector(wanted, tmp_path)
        await collector.play(policy, ControlLane(rl_toys.control()))
        return collector

    asyncio.run(play(ScriptedPolicy([{"name": "add", "arguments": {"amount": 1}}])))  # runs out of turns
    assert {trace.scored for trace in read_traces(tmp_path / TRACES)} == {False}
    collector = asyncio.run(play(ScriptedPolicy([add])))
    assert collector.complete
    assert len(list(attempts(tmp_path))) == 6
    assert sorted(trace.place for trace in read_traces(tmp_path / TRACES)) == list(range(6))
    with locked(tmp_path), pytest.raises(ConfigurationError, match="another process"):
        asyncio.run(play(ScriptedPolicy([add])))
    assert (tmp_path / ATTEMPTS).exists()
