"""mcpgym new-model, collect and sft, as they are typed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str, str]]


def test_from_nothing_to_a_fine_tuned_model(command: Command, tmp_path: Path) -> None:
    code, out, _ = command("new-model", "tic-tac-toe", "--out", "tiny", "--layers", "1", "--hidden-size", "32")
    assert code == 0
    assert "parameters, a vocabulary of 1,0" in out
    code, out, err = command(
        "collect", "tic-tac-toe", "-p", "teacher:skill=0.9", "-n", "30", "--keep", "reward >= 0.5",
        "--out", "data", "--model", "tiny",
    )  # fmt: skip
    assert code == 0, err
    assert "of 30 rollouts kept" in out
    assert "are learnt" in out
    rows = [json.loads(line) for line in Path("data/sft.jsonl").read_text().splitlines()]
    assert rows
    assert all(row["reward"] >= 0.5 and len(row["ids"]) == len(row["mask"]) for row in rows)
    Path("run.toml").write_text(
        'data = "data"\nout = "run"\n[model]\npath = "tiny"\n[sft]\nsteps = 6\nbatch_size = 4\nwarm_up_steps = 2\n'
    )
    code, out, err = command("sft", "run.toml")
    assert code == 0, err
    assert "after 6 steps" in out
    written = {item.name for item in Path("run/model").iterdir()}
    assert written == {item.name for item in Path("tiny").iterdir()}
    assert Path("run/model/tokenizer.json").read_bytes() == Path("tiny/tokenizer.json").read_bytes()
    assert Path("run/model/model.safetensors").read_bytes() != Path("tiny/model.safetensors").read_bytes()
    weights = Path("run/model/model.safetensors").read_bytes()
    code, _, _ = command("sft", "run.toml")  # it is done: nothing changes
    assert code == 0
    assert Path("run/model/model.safetensors").read_bytes() == weights
    Path("run.toml").write_text(Path("run.toml").read_text().replace("steps = 6", "steps = 7"))
    code, _, err = command("sft", "run.toml")
    assert code == 2
    assert "a run with other settings" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("new-model", "tic-tac-toe", "--out", "m", "--heads", "3"), "must be a multiple of twice the heads"),
        (("new-model", "tic-tac-toe", "--out", "m", "--vocabulary", "5"), "--vocabulary: Input should be greater"),
        (("new-model", "tictactoe", "--out", "m"), "did you mean 'tic-tac-toe'"),
        (("collect", "tic-tac-toe", "-p", "teacher:skill=2"), "write teacher:skill=S with S from 0 to 1"),
        (("collect", "tic-tac-toe", "-p", "random", "--keep", "reward >"), "cannot be read"),
        (("collect", "tic-tac-toe", "-p", "random", "--keep", "components.formt > 1"), "did you mean 'format'"),
        (("collect", "tic-tac-toe", "-p", "random", "--model", "nowhere"), "does not exist"),
        (("collect", "tic-tac-toe", "-p", "random", "--split", "tran"), "did you mean 'train'"),
        (("sft", "nowhere.toml"), "cannot read nowhere.toml"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(command: Command, arguments: tuple[str, ...], words: str) -> None:
    code, _, err = command(*arguments)
    assert code == 2
    assert words in err
    assert len(err.strip().splitlines()) == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("data =", "is no TOML"),
        ('data = "d"\nout = "o"\n', "model: field required"),
        ('data = "d"\nout = "o"\n[model]\n', "model.path is missing"),
        ('data = "d"\nout = "o"\n[model]\npath = "m"\n[sft]\nstep = 3\n', "sft.step: extra inputs"),
        ('data = "d"\nout = "o"\n[model]\npath = "m"\n[sft]\nsteps = 0\n', "sft.steps: input should be greater than 0"),
        ('data = "d"\nout = "o"\n[model]\npath = "m"\n', "does not exist"),
    ],
)
def test_a_configuration_that_will_not_do_says_what(command: Command, text: str, words: str) -> None:
    Path("c.toml").write_text(text)
    code, _, err = command("sft", "c.toml")
    assert code == 2
    assert words in err


def test_nothing_kept_is_a_failure(command: Command) -> None:
    code, out, err = command("collect", "tic-tac-toe", "-p", "random", "-n", "5", "--keep", "reward > 9", "--out", "d")
    assert code == 1
    assert "0 of 5 rollouts kept; left out: 5 by --keep" in out
    assert "no rollout was kept" in err
    assert Path("d/sft.jsonl").read_text() == ""


def test_another_condition_needs_no_new_rollout(command: Command) -> None:
    arguments = ("collect", "tic-tac-toe", "-p", "random", "-n", "20", "--out", "d", "--keep")
    command(*arguments, "outcome == 'win'")
    traces = Path("d/traces.jsonl").read_bytes()
    code, out, _ = command(*arguments, "outcome == 'loss'")
    assert code == 0
    assert "(20 were there)" in out
    assert Path("d/traces.jsonl").read_bytes() == traces
    assert {json.loads(line)["outcome"] for line in Path("d/sft.jsonl").read_text().splitlines()} == {"loss"}


def test_another_policy_in_the_same_folder_is_refused(command: Command) -> None:
    command("collect", "tic-tac-toe", "-p", "random", "-n", "2", "--out", "d")
    code, _, err = command("collect", "tic-tac-toe", "-p", "expert", "-n", "2", "--out", "d")
    assert code == 2
    assert "policy is 'random' there, not 'expert'" in err


@pytest.mark.slow
def test_case_31_a_collection_killed_at_any_moment_goes_on(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "mcpgym_clients",
        "collect",
        "tic-tac-toe",
        "-p",
        "teacher:skill=0.9",
        "-n",
        "3000",
    ]
    traces = tmp_path / "killed" / "traces.jsonl"
    with subprocess.Popen([*command, "--out", str(tmp_path / "killed")], stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not (traces.exists() and traces.stat().st_size > 50_000):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    there = traces.read_bytes().count(b"\n")
    assert 0 < there < 3000
    for name in ("killed", "whole"):
        done = subprocess.run([*command, "--out", str(tmp_path / name)], capture_output=True, text=True, timeout=110)
        assert done.returncode == 0, done.stderr
    for name in ("sft.jsonl", "card.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    lines = traces.read_text().splitlines()
    assert sorted(json.loads(line)["place"] for line in lines) == list(range(3000))
    assert not list((tmp_path / "killed").glob(".*"))
