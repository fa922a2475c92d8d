"""``mcpgym eval --resume``: a run killed at any moment goes on, and repeats and loses nothing."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_endpoint import small_endpoint

from mcpgym_clients import run_file
from mcpgym_clients.eval_options import EvalOptions
from mcpgym_clients.run_file import _NOT_KEPT, OPERATIONAL
from mcpgym_rl.locks import locked
from mcpgym_rl.resuming import attempts
from mcpgym_rl.traces import Trace, read_traces

HERE = Path(__file__).parent
RUN = ["eval", "tic-tac-toe", "-p", "random", "-n", "100", "-r", "3"]


def whole(folder: Path) -> list[dict[str, Any]]:
    """The traces by place, without what is another each time: times, and signatures with times in them."""
    made = []
    for trace in sorted(read_traces(folder / "traces.jsonl"), key=lambda trace: trace.place):
        item = trace.to_dict()
        del item["seconds"]
        item["score"].pop("receipt", None)
        for call in item["calls"]:
            del call["milliseconds"]
        made.append(item)
    return made


def summary_of(folder: Path) -> dict[str, Any]:
    summary = json.loads((folder / "summary.json").read_text())
    for name in ("started", "seconds"):
        del summary["run"][name]
    return summary


def killed(tmp_path: Path, *arguments: str) -> list[list[int]]:
    """What the runner printed: how each fork ended, and how many lines there were."""
    done = subprocess.run(
        [sys.executable, str(HERE / "resume_runner.py"), *arguments],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [list(map(int, line.split())) for line in done.stdout.splitlines()]


def ended_like_an_unbroken_run(command: Callable, folder: Path, unbroken: Path) -> None:
    assert command(*RUN, "--out", str(unbroken))[0] == 0
    traces = read_traces(folder / "traces.jsonl")
    assert not traces.torn
    assert len(traces) == 300
    assert all(trace.scored for trace in traces)
    assert {(trace.task, trace.seed, trace.repeat) for trace in traces} == {
        (f"test-{index}", repeat, repeat) for repeat in range(3) for index in range(100)
    }
    assert whole(folder) == whole(unbroken)
    assert summary_of(folder) == summary_of(unbroken)
    assert sorted(item.name for item in folder.iterdir() if item.name.startswith(".")) == [], "nothing is left over"


@pytest.mark.slow
def test_case_31_killed_at_20_random_moments_a_run_plays_300_episodes_once_each(
    command: Callable, tmp_path: Path
) -> None:
    seed = random.randrange(10_000)
    print("seed", seed)  # for a failure's report
    forks = killed(tmp_path, "kills", str(seed), "20", "run")
    print(forks)
    assert [code for code, _ in forks[:20]].count(-9) >= 18, "too few were killed while they were at work"
    assert forks[20] == [0, 300]
    counts = [count for _, count in forks]
    assert counts == sorted(counts), "no line was lost"
    ended_like_an_unbroken_run(command, tmp_path / "run", tmp_path / "unbroken")


@pytest.mark.slow
def test_case_31_killed_in_the_middle_of_a_write_or_of_a_replacement_it_goes_on(
    command: Callable, tmp_path: Path
) -> None:
    forks = killed(tmp_path, "faults", "run")
    assert [code for code, _ in forks] == [-9] * 5 + [130, -9, -9, 130, -9, 130, -9, 0], forks
    again = list(attempts(tmp_path / "run"))
    assert again, "what was cancelled is kept"
    assert all(trace.stop_reason == "cancelled" for trace in again)
    assert len({trace.to_json() for trace in again}) == len(again), "and that once"
    ended_like_an_unbroken_run(command, tmp_path / "run", tmp_path / "unbroken")


SHORT = [{"name": "play", "arguments": {"position": cell}} for cell in (4, 0, 8, 2, 6, 1, 3, 5, 7)]


def test_what_has_no_score_is_played_again_and_what_it_left_is_kept(command: Callable, tmp_path: Path) -> None:
    with small_endpoint({"prompt_tokens": 10, "completion_tokens": 2}, fails=frozenset({2, 5, 9})) as endpoint:
        arguments = ["eval", "tic-tac-toe", "-p", f"openai:m@{endpoint.url}", "-n", "8", "--concurrency", "1"]
        code, out, _ = command(*arguments, "--out", "run")
        assert code == 0
        assert "mcpgym eval --resume run" in out
        first = summary_of(tmp_path / "run")
        assert (first["scored"], first["unscored"]) == (6, {"policy_failed": 2})
        kept = [trace for trace in read_traces(tmp_path / "run" / "traces.jsonl") if trace.scored]
        code, _, err = command("eval", "--resume", "run")  # the ninth request fails too
        assert code == 0
        assert "6 of 8 episodes have a score; 2 are to be played" in err
        assert len(list(attempts(tmp_path / "run"))) == 2
        assert command("eval", "--resume", "run")[0] == 0
        assert len(endpoint.requests) == 8 + 2 + 1, "no episode with a score was played again"
        assert command("eval", "--resume", "run")[0] == 0
        assert len(endpoint.requests) == 11
    made = summary_of(tmp_path / "run")
    assert (made["episodes"], made["scored"], made["unscored"], made["complete"]) == (8, 8, {}, True)
    assert made["tokens"] == {"prompt": 80, "completion": 16}
    assert made["cost"]["played_again"] == {"episodes": 3, "prompt": 30, "completion": 6}
    traces = read_traces(tmp_path / "run" / "traces.jsonl")
    assert traces[: len(kept)] == kept
    assert sorted(trace.place for trace in traces) == list(range(8))


def test_a_finished_run_is_summed_up_again_and_played_no_further(command: Callable, tmp_path: Path) -> None:
    assert command("eval", "reverse-text", "-p", "random", "-n", "6", "--out", "run")[0] == 0
    before = (tmp_path / "run" / "traces.jsonl").read_bytes()
    made = summary_of(tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    assert command("eval", "--resume", "run")[0] == 0
    assert summary_of(tmp_path / "run") == made
    assert (tmp_path / "run" / "traces.jsonl").read_bytes() == before


def broken(command: Callable, tmp_path: Path, *more: str, lines: int = 4) -> Path:
    """A run of ten episodes, of which so many lines are there, the last one torn."""
    assert command("eval", "reverse-text", "-p", "random", "-n", "10", "--seed", "3", *more, "--out", "run")[0] == 0
    traces = tmp_path / "run" / "traces.jsonl"
    traces.write_bytes(b"".join(traces.read_bytes().splitlines(True)[:lines])[:-50])
    (tmp_path / "run" / "summary.json").unlink()
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--seed", "4"], "--seed would change what the run is (it has 3)"),
        (["-n", "11"], "--tasks would change what the run is (it has 10)"),
        (["double-check"], "ENV would change what the run is (it has reverse-text)"),
        (["-p", "expert"], "--policy would change what the run is (it has random)"),
        (["--split", "train"], "--split would change"),
        (["--config", "words=7"], "--config would change what the run is (it has none)"),
        (
            ["--max-turns", "3", "--think"],
            "--max-turns would change what the run is (it has none); --think would change",
        ),
        (["--out", "other"], "--out has no meaning here"),
        (["--overwrite"], "--overwrite has no meaning here"),
        (["--timeout", "0"], "--timeout must be a number above 0"),
        (["--max-cost", "nan"], "--max-cost must be a number above 0"),
        (["--concurrency", "0"], "concurrency"),
    ],
)
def test_options_that_would_change_the_run_are_refused(
    command: Callable, tmp_path: Path, given: list[str], says: str
) -> None:
    folder = broken(command, tmp_path)
    before = {item.name: item.read_bytes() for item in folder.iterdir()}
    code, _, err = command("eval", "--resume", "run", *given)
    assert code == 2
    assert says in err
    assert {item.name: item.read_bytes() for item in folder.iterdir()} == before


def test_options_that_change_nothing_may_be_given_and_are_kept(command: Callable, tmp_path: Path) -> None:
    broken(command, tmp_path)
    given = ["reverse-text", "-p", "random", "--seed", "3", "--concurrency", "2", "--timeout", "77", "--lane", "mcp"]
    assert command("eval", "--resume", "run", *given)[0] == 0
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (run["options"]["concurrency"], run["options"]["timeout"], run["options"]["lane"]) == (2, 77, "mcp")
    assert len(run["resumed"]) == 1
    assert summary_of(tmp_path / "run")["scored"] == 10


def test_every_option_is_either_what_a_run_is_or_how_it_is_carried_out() -> None:
    names = {field.name for field in dataclasses.fields(EvalOptions)}
    what_it_is = {"environment", "policy", "split", "tasks", "repeats", "seed", "config"}
    what_it_is |= {"tool_mode", "think", "temperature", "max_tokens", "max_turns", "agent"}
    assert names == what_it_is | OPERATIONAL | _NOT_KEPT, "a new option: does it change results?"


def test_the_same_command_again_tells_of_resume(command: Callable, tmp_path: Path) -> None:
    broken(command, tmp_path)
    code, _, err = command("eval", "reverse-text", "-p", "random", "-n", "10", "--seed", "3", "--out", "run")
    assert code == 2
    assert "mcpgym eval --resume run" in err
    assert command("eval", "--resume", "run")[0] == 0
    code, _, err = command("eval", "reverse-text", "-p", "random", "-n", "10", "--seed", "3", "--out", "run")
    assert code == 2
    assert "--resume" not in err
    assert "--overwrite" in err


def test_two_processes_cannot_work_in_one_folder(command: Callable, tmp_path: Path) -> None:
    folder = broken(command, tmp_path)
    before = (folder / "traces.jsonl").read_bytes()
    with locked(folder):
        for more in (["--resume", "run"], ["reverse-text", "-p", "random", "--out", "run", "--overwrite"]):
            code, _, err = command("eval", *more)
            assert code == 2
            assert "another process is at work in run" in err
    assert (folder / "traces.jsonl").read_bytes() == before
    assert command("eval", "--resume", "run")[0] == 0


def change(folder: Path, name: str, value: Any) -> None:
    read = json.loads((folder / "run.json").read_text())
    *path, last = name.split(".")
    inner = read
    for part in path:
        inner = inner[part]
    inner[last] = value
    (folder / "run.json").write_text(json.dumps(read))


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("schema", "mcpgym.run/9", "its schema is not 'mcpgym.run/1'"),
        ("environment", "chess", "the environment is reverse-text here, and was chess"),
        ("environment_version", "0", "the environment has version 1 now, and had 0 when the run began"),
        ("schema_hash", "0" * 64, "tools are not those the run began with"),
        ("options.tasks", "many", "run.json is damaged: options.tasks"),
        ("options.tasks", -1, "--tasks must be a number above 0"),
        ("options.config", "no", "run.json is damaged"),
        ("options.seed", 4, "has episodes of another run"),
        ("options.tasks", 2, "has episodes of another run"),
        ("options.config", ["test_tasks=50"], "is one with another configuration (test_tasks)"),
        ("options.policy", "expert", "whose policy is random and not expert"),
        ("options.split", "train", "whose split is test and not train"),
        ("options", None, "run.json is damaged"),
        (
            "options.policy",
            "openai:m@http://***@127.0.0.1:9/v1",
            "which is not kept: put it into MCPGYM_EVAL_POLICY again",
        ),
    ],
)
def test_a_run_file_that_is_not_this_runs_is_refused(
    command: Callable, tmp_path: Path, name: str, value: Any, says: str
) -> None:
    change(broken(command, tmp_path), name, value)
    code, _, err = command("eval", "--resume", "run")
    assert code == 2
    assert says in err
    assert len(err.splitlines()) == 1


def test_the_traces_of_another_policy_are_none_of_this_run(command: Callable, tmp_path: Path) -> None:
    """They were once summed up under its name."""
    folder = broken(command, tmp_path)
    assert command("eval", "reverse-text", "-p", "expert", "-n", "10", "--seed", "3", "--out", "other")[0] == 0
    (folder / "traces.jsonl").write_bytes((tmp_path / "other" / "traces.jsonl").read_bytes())
    before = {item.name: item.read_bytes() for item in folder.iterdir()}
    code, _, err = command("eval", "--resume", "run")
    assert (code, "whose policy is expert and not random" in err) == (2, True)
    assert {item.name: item.read_bytes() for item in folder.iterdir()} == before


def test_a_server_that_plays_another_configuration_ends_the_run(
    command: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only the server knows the configuration, the first new trace tells."""
    folder = broken(command, tmp_path)
    change(folder, "options.config", ["test_tasks=50"])
    found = run_file.describe

    async def without_config(*arguments: Any) -> run_file.RunFile:
        return dataclasses.replace(await found(*arguments), config=None)

    monkeypatch.setattr("mcpgym_clients.evaluating.describe", without_config)
    code, _, err = command("eval", "--resume", "run")
    assert (code, "it is one with another configuration (test_tasks)" in err) == (1, True)
    assert len(read_traces(folder / "traces.jsonl")) == 3


def test_what_is_no_run_is_refused(command: Callable, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "there is no run.json in it" in command("eval", "--resume", "empty")[2]
    assert "there is no such folder" in command("eval", "--resume", "nowhere")[2]
    (tmp_path / "empty" / "run.json").write_text("{")
    assert "cannot be read" in command("eval", "--resume", "empty")[2]
    assert "--resume FOLDER" in command("eval", "tic-tac-toe")[2]


def test_a_script_that_is_another_by_now_is_refused(command: Callable, tmp_path: Path) -> None:
    script = tmp_path / "moves.json"
    script.write_text(json.dumps([*SHORT, "done"]))
    assert command("eval", "tic-tac-toe", "-p", "script:moves.json", "-n", "5", "--out", "run")[0] == 0
    script.write_text(json.dumps([*SHORT[::-1], "done"]))
    code, _, err = command("eval", "--resume", "run")
    assert code == 2
    assert "the policy's file is not the one the run began with" in err


def test_no_password_is_kept_and_it_is_asked_for_again(
    command: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_endpoint({"prompt_tokens": 1, "completion_tokens": 1}, fails=frozenset({1})) as endpoint:
        policy = f"openai:m@{endpoint.url.replace('//', '//me:hunter2@')}"
        arguments = ["eval", "tic-tac-toe", "-n", "2", "--concurrency", "1", "--out", "run"]
        code, _, err = command(*arguments, "-p", policy)
        assert (code, "hunter2" in err) == (2, False), "every user of the machine can read a command line"
        monkeypatch.setenv("MCPGYM_EVAL_POLICY", policy)
        assert command(*arguments)[0] == 0
        monkeypatch.delenv("MCPGYM_EVAL_POLICY")
        assert not any(b"hunter2" in item.read_bytes() for item in (tmp_path / "run").iterdir())
        code, _, err = command("eval", "--resume", "run")
        assert code == 2
        assert "put it into MCPGYM_EVAL_POLICY again" in err
        monkeypatch.setenv("MCPGYM_EVAL_POLICY", policy)
        assert command("eval", "--resume", "run")[0] == 0
        monkeypatch.setenv("MCPGYM_EVAL_POLICY", policy.replace("/v1", "/v2"))
        assert command("eval", "--resume", "run")[0] == 2, "another endpoint's is none"
    assert not any(b"hunter2" in item.read_bytes() for item in (tmp_path / "run").iterdir())
    assert summary_of(tmp_path / "run")["scored"] == 2


def test_a_trace_of_a_place_that_came_twice_counts_once(command: Callable, tmp_path: Path) -> None:
    folder = broken(command, tmp_path)
    lines = (folder / "traces.jsonl").read_bytes().splitlines(True)
    (folder / "traces.jsonl").write_bytes(b"".join([*lines[:3], lines[1].replace(b'"seconds":', b'"seconds":1')]))
    assert command("eval", "--resume", "run")[0] == 0
    traces: list[Trace] = read_traces(folder / "traces.jsonl")
    assert sorted(trace.place for trace in traces) == list(range(10))
    assert len(list(attempts(folder))) == 1
