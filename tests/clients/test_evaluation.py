"""``mcpgym eval``: its files, its numbers, and what happens when something goes wrong."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from mcpgym_rl.traces import read_traces

PERFECT = ["--config", "min_random_move_prob=0", "--config", "max_random_move_prob=0"]


def summary_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text())


@pytest.mark.parametrize("lane", ["control", "mcp"])
def test_the_expert_draws_every_game_against_perfect_play(command: Callable, tmp_path: Path, lane: str) -> None:
    code, out, _ = command(
        "eval", "tic-tac-toe", "--policy", "expert", *PERFECT, "-n", "60", "--lane", lane, "--out", "run"
    )
    assert code == 0
    made = summary_of(tmp_path / "run")
    assert made["outcomes"] == {"win": 0.0, "draw": 1.0, "loss": 0.0}
    assert (made["episodes"], made["scored"], made["complete"]) == (60, 60, True)
    assert "100.0 %" in out
    traces = read_traces(tmp_path / "run" / "traces.jsonl")
    assert len(traces) == 60
    assert {trace.score.game_outcome for trace in traces if trace.score} == {"draw"}


def test_both_lanes_give_the_same_scores(command: Callable, tmp_path: Path) -> None:
    for lane in ("control", "mcp"):
        assert command("eval", "tic-tac-toe", "-p", "random", "-n", "40", "--lane", lane, "--out", lane)[0] == 0
    first, second = (summary_of(tmp_path / lane) for lane in ("control", "mcp"))
    for name in ("reward", "components", "outcomes", "distinct_episodes", "turns", "stop_reasons"):
        assert first[name] == second[name]


def test_the_summary_repeats_the_run_whatever_the_concurrency(command: Callable, tmp_path: Path) -> None:
    assert command("eval", "tic-tac-toe", "-p", "random", "-n", "30", "-r", "2", "--out", "a")[0] == 0
    first = summary_of(tmp_path / "a")
    words = first["run"]["command"].split()
    assert words[:3] == ["mcpgym", "eval", "tic-tac-toe"]
    words[words.index("--concurrency") + 1] = "3"
    assert command(*words[1:], "--out", "b")[0] == 0
    second = summary_of(tmp_path / "b")
    same = set(first) - {"run"}
    assert {name: first[name] for name in same} == {name: second[name] for name in same}


def test_episode_i_and_repeat_r_have_the_task_and_seed_they_should(command: Callable, tmp_path: Path) -> None:
    code, _, _ = command(
        "eval", "tic-tac-toe", "-p", "random", "-n", "5", "-r", "3", "--seed", "70", "--split", "train", "--out", "run"
    )
    assert code == 0
    traces = sorted(read_traces(tmp_path / "run" / "traces.jsonl"), key=lambda trace: trace.place)
    assert [(trace.task, trace.seed, trace.repeat) for trace in traces] == [
        (f"train-{index}", 70 + repeat, repeat) for repeat in range(3) for index in range(5)
    ]
    run = summary_of(tmp_path / "run")["run"]
    assert (run["n"], run["repeats"], run["seed"], run["split"], run["planned"]) == (5, 3, 70, "train", 15)
    assert run["schema_hash"] == traces[0].schema_hash
    assert run["config"]["max_turns"] == 8


def test_the_default_folder_names_the_run(command: Callable, tmp_path: Path) -> None:
    assert command("eval", "reverse-text", "-p", "expert", "-n", "3")[0] == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"reverse-text-expert-\d{8}-\d{6}", folder.name)
    assert sorted(item.name for item in folder.iterdir()) == [
        "receipts.jsonl", "run.json", "summary.json", "traces.jsonl"
    ]  # fmt: skip


def test_results_are_never_mixed(command: Callable, tmp_path: Path) -> None:
    arguments = ["eval", "tic-tac-toe", "-p", "random", "--out", "run"]
    assert command(*arguments, "-n", "4")[0] == 0
    before = (tmp_path / "run" / "traces.jsonl").read_bytes()
    code, _, err = command(*arguments, "-n", "6")
    assert code == 2
    assert "--overwrite" in err
    assert (tmp_path / "run" / "traces.jsonl").read_bytes() == before
    assert command(*arguments, "-n", "6", "--overwrite")[0] == 0
    assert len(read_traces(tmp_path / "run" / "traces.jsonl")) == 6


def test_an_interrupt_while_modules_are_imported_is_never_lost(tmp_path: Path) -> None:
    """Python swallows a KeyboardInterrupt in a callback of its import system: the run would go on."""
    (tmp_path / "interrupted.py").write_text(
        "import os, signal, weakref\n"
        "class Thing: pass\n"
        "thing = Thing()\n"
        "lock = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))\n"
        "del thing\n"
    )
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); sys.argv[0] = 'mcpgym'\n"
        "import mcpgym_clients.starting as s; s.starting(); import interrupted\n"
        "from mcpgym_clients.cli import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "list"], cwd=tmp_path, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_small_split_is_played_whole_unless_more_was_asked_for(command: Callable, tmp_path: Path) -> None:
    assert command("eval", "tic-tac-toe", "-p", "random", "--config", "test_tasks=7", "--out", "run")[0] == 0
    made = summary_of(tmp_path / "run")
    assert (made["episodes"], made["complete"], made["run"]["n"], made["run"]["planned"]) == (7, True, 7, 7)
    assert "-n 7 " in made["run"]["command"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tic-tac-toe", "-p", "random", "-n", "1001"], "has 1000 tasks"),
        (["tic-tac-toe", "-p", "random", "-n", "8", "--config", "test_tasks=7"], "has 7 tasks"),
        (["tic-tac-toe", "-p", "random", "--split", "dev"], "there is: test, train"),
        (["tic-tac-toe", "-p", "rndom"], "did you mean 'random'"),
        (["tic-tac-toe", "-p", "script:nowhere.json"], "nowhere.json"),
        (["tic-tac-toe", "-p", "openai:model"], "openai:MODEL@BASE_URL"),
        (["tic-tac-toe", "-p", "random", "--temperature", "1"], "openai"),
        (["tic-tac-toe", "-p", "random", "--config", "max_turns=0"], "max_turns"),
        (["nothing", "-p", "random"], "nothing"),
        (["tic-tac-toe", "-p", "random", "--server", "nonsense"], "MCPGYM_CONTROL_SECRET"),
        (["tic-tac-toe", "-p", "random", "--server", "nonsense", "--secret-file", "secret"], "unix:"),
    ],
)
def test_what_cannot_be_is_said_and_leaves_no_folder(
    command: Callable, tmp_path: Path, arguments: list[str], says: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("0123456789abcdef0123")
    secret.chmod(0o600)
    code, _, err = command("eval", *arguments, "--out", "run")
    assert code == 2, err
    assert err.splitlines()[-1].startswith("error: ")
    assert says in err
    assert not (tmp_path / "run").exists()


def test_out_that_is_a_file_is_refused(command: Callable, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    code, _, err = command("eval", "tic-tac-toe", "-p", "random", "--out", "file")
    assert code == 2
    assert "is a file" in err
    assert (tmp_path / "file").read_text() == "mine"


def test_illegal_moves_are_a_share_of_games(command: Callable, tmp_path: Path) -> None:
    script = [{"name": "play", "arguments": {"position": position}} for position in (99, 4, 0, 1, 2, 3, 5, 6)]
    (tmp_path / "moves.json").write_text(json.dumps(script))
    code, out, _ = command("eval", "tic-tac-toe", "-p", "script:moves.json", "-n", "20", "--out", "run")
    assert code == 0
    made = summary_of(tmp_path / "run")
    assert made["penalised"]["invalid_move"]["share"] == 1.0
    assert made["components"]["invalid_move"] == pytest.approx(-0.1)
    assert made["format_rate"] == 0.0
    assert "episodes with invalid move" in out


def test_case_29_nothing_scored_fails_and_says_why(command: Callable, tmp_path: Path) -> None:
    (tmp_path / "short.json").write_text(json.dumps([{"name": "play", "arguments": {"position": 4}}]))
    code, out, err = command("eval", "tic-tac-toe", "-p", "script:short.json", "-n", "5", "--out", "run")
    assert code == 1
    assert "no episode was scored" in err
    assert "the episode goes on after" in err
    made = summary_of(tmp_path / "run")
    assert made["reward"]["mean"] is None
    assert made["unscored"] == {"policy_failed": 5}
    assert "policy failed" in out


def test_max_turns_is_a_limit_with_a_name(command: Callable, tmp_path: Path) -> None:
    assert command("eval", "tic-tac-toe", "-p", "random", "-n", "10", "--max-turns", "1", "--out", "run")[0] == 0
    made = summary_of(tmp_path / "run")
    assert made["stop_reasons"] == {"max_turns": 10}
    assert made["turns"]["max"] == 1


def test_an_environment_that_is_being_written_is_evaluated_by_module_and_class(
    process: Callable, tmp_path: Path
) -> None:
    (tmp_path / "guess.py").write_text(
        "from mcpgym import Environment, LazyTasks, Task, reward, task_id\n"
        "from mcpgym.messages import user\n"
        "class Guess(Environment):\n"
        "    name = 'guess'\n"
        "    def tasks(self, split):\n"
        "        return LazyTasks(9, lambda i: Task(task_id(split, i), split, (user(f'{split} {i}?'),)))\n"
        "    def reset(self, task, seed): return {}\n"
        "    @reward\n"
        "    def one(self, state) -> float: return 1.0\n"
    )
    done = process("eval", "guess:Guess", "-p", "random", "-n", "9", "--out", "run")
    assert done.returncode == 0, done.stderr
    made = summary_of(tmp_path / "run")
    assert made["reward"]["mean"] == 1.0
    assert made["run"]["environment"] == "guess"


def _spawn(tmp_path: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mcpgym_clients", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "120", **variables},
    )


def _nothing_is_left(process: subprocess.Popen[str], children: list[psutil.Process]) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if process.poll() is not None and not any(child.is_running() for child in children):
            return True
        time.sleep(0.05)
    return False


LONG = ["-n", "1000", "-r", "30"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lane", "number"), [("control", signal.SIGINT), ("mcp", signal.SIGINT), ("control", signal.SIGTERM)]
)
def test_case_11_an_interrupt_at_any_moment_leaves_nothing_and_loses_nothing(
    tmp_path: Path, lane: str, number: signal.Signals
) -> None:
    """A signal at a random moment of the run: exit 130, no process left, whole lines, and a summary that says so."""
    delay = random.uniform(0.0, 1.5)
    process = _spawn(tmp_path, "eval", "tic-tac-toe", "-p", "random", *LONG, "--lane", lane, "--out", "run")
    traces = tmp_path / "run" / "traces.jsonl"
    deadline = time.monotonic() + 60
    while not (traces.exists() and traces.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(delay)
    print("sent after", delay)  # for a failure's report
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert _nothing_is_left(process, children)
    assert "interrupted" in err
    for leak in ("Traceback", "nclosed", "never retrieved", "was destroyed", "never awaited"):
        assert leak not in err
    read = read_traces(traces)
    assert not read.torn
    made = summary_of(tmp_path / "run")
    assert made["complete"] is False
    assert made["episodes"] == len(read) < 30_000
    assert made["scored"] == sum(trace.scored for trace in read) > 0
    assert "not completed" in out


@pytest.mark.slow
def test_an_interrupt_before_the_run_begins_is_quiet_too(tmp_path: Path) -> None:
    for delay in (0.15, 0.4, 0.7):
        process = _spawn(tmp_path, "eval", "tic-tac-toe", "-p", "random", *LONG, "--out", f"run-{delay}")
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert process.returncode in (130, -signal.SIGINT)  # the latter: before Python ran a line of ours
        assert process.returncode != 130 or "Traceback" not in err
        traces = tmp_path / f"run-{delay}" / "traces.jsonl"
        if traces.exists():
            read_traces(traces)


@pytest.mark.slow
def test_case_31_a_kill_loses_no_trace_that_was_written(tmp_path: Path) -> None:
    process = _spawn(tmp_path, "eval", "tic-tac-toe", "-p", "random", *LONG, "--out", "run")
    traces = tmp_path / "run" / "traces.jsonl"
    deadline = time.monotonic() + 60
    while not (traces.exists() and traces.stat().st_size > 200_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=20)
    read = read_traces(traces)
    assert len(read) > 10
    assert all(trace.scored for trace in read)


@pytest.fixture
def server(tmp_path: Path) -> Any:
    """``mcpgym serve`` in a process of its own: the process and the control plane's address."""
    secret = tmp_path / "secret"
    secret.write_text("a-secret-of-this-test-alone")
    secret.chmod(0o600)
    socket = tmp_path / "c.sock"
    process = _spawn(
        tmp_path, "serve", "tic-tac-toe", "--port", "0", "--control-socket", str(socket), "--secret-file", "secret"
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "Stop with" in line:
            break
    yield process, f"unix:{socket}"
    process.kill()
    process.communicate(timeout=10)


def test_eval_against_a_running_server(server: Any, command: Callable, tmp_path: Path) -> None:
    _, address = server
    arguments = ["eval", "tic-tac-toe", "-p", "expert", *PERFECT, "-n", "20", "--secret-file", "secret"]
    assert command(*arguments, "--server", address, "--out", "served")[0] == 0
    made = summary_of(tmp_path / "served")
    assert made["outcomes"]["draw"] == 1.0
    assert made["run"]["lane"] == "mcp"
    code, _, err = command(*arguments[:-4], "-n", "1001", "--secret-file", "secret", "--server", address)
    assert code == 2
    assert "has 1000 tasks" in err


@pytest.mark.slow
@pytest.mark.parametrize("lane", ["mcp", "control"])
def test_case_13_a_server_that_dies_in_mid_run_is_reported_within_seconds(
    server: Any, tmp_path: Path, lane: str
) -> None:
    served, address = server
    process = _spawn(
        tmp_path, "eval", "tic-tac-toe", "-p", "random", *LONG, "--lane", lane,
        "--server", address, "--secret-file", "secret", "--out", "run",
    )  # fmt: skip
    traces = tmp_path / "run" / "traces.jsonl"
    deadline = time.monotonic() + 60
    while not (traces.exists() and traces.stat().st_size > 50_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    served.kill()
    killed = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - killed < 15
    assert process.returncode == 1, err
    assert "Traceback" not in err
    assert "server" in err.splitlines()[-1]
    made = summary_of(tmp_path / "run")
    assert made["complete"] is False
    assert made["failure"]
    assert made["scored"] > 0
    assert made["episodes"] == len(read_traces(traces))


def test_a_full_disk_is_said_in_one_line(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); "
    code = limit + "import sys; from mcpgym_clients.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        # -B: Python itself would cut off what it compiles, and leave that for everybody
        [sys.executable, "-B", "-c", code, "eval", "tic-tac-toe", "-p", "random", "-n", "200", "--out", "run"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "cannot write" in done.stderr.splitlines()[-1]
    made = summary_of(tmp_path / "run")
    assert made["complete"] is False
    assert "cannot write" in made["failure"]
    assert made["episodes"] == len(read_traces(tmp_path / "run" / "traces.jsonl"))


def test_every_field_of_a_summary_is_documented(command: Callable, tmp_path: Path) -> None:
    assert command("eval", "tic-tac-toe", "-p", "random", "-n", "3", "--out", "run")[0] == 0
    document = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text()
    named = set(re.findall(r"`(\w+)`", document))
    assert set(summary_of(tmp_path / "run")) - {"schema"} <= named


UNFIT = """
from mcpgym import ConfigurationError, Environment, LazyTasks, Task, reward, task_id
from mcpgym.messages import user

class Unfit(Environment):
    "Stands on an engine that is not installed."
    name = "unfit"
    def tasks(self, split):
        return LazyTasks(50, lambda i: Task(task_id(split, i), split, (user("Go."),)))
    def reset(self, task, seed): raise ConfigurationError("there is no engine. Install one.")
    @reward
    def nothing(self, state) -> float: return 0.0
    def reference_policies(self):
        from mcpgym.messages import assistant
        return {"expert": lambda messages, random: assistant("x")}
"""


@pytest.mark.parametrize("lane", ["control", "mcp"])
def test_what_cannot_run_here_ends_the_run_at_once_with_what_to_do(
    command: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lane: str
) -> None:
    (tmp_path / "unfit.py").write_text(UNFIT)
    monkeypatch.syspath_prepend(tmp_path)
    code, _, err = command("eval", "unfit:Unfit", "-p", "expert", "-n", "40", "--lane", lane, "--out", "run")
    assert code == 2
    assert err.splitlines()[-1] == "error: unfit cannot run here: there is no engine. Install one."
    assert "resume" in command("eval", "unfit:Unfit", "-p", "expert", "-n", "40", "--out", "run")[2]
