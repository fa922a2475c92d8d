"""Whole runs, from a new model on: they learn, they can be killed at any moment, and they end the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from mcpgym.errors import ConfigurationError
from mcpgym_rl.training.curves import draw_curves
from mcpgym_rl.training.guards import TrainingStopped
from mcpgym_rl.training.metrics import read_metrics
from mcpgym_rl.training.pipeline import Pipeline
from mcpgym_rl.training.recipe import make_recipe

HERE = Path(__file__).parent
GUESS: dict[str, Any] = {
    "environment": "guessing_game:Guess",
    "seed": 5,
    "model": {"new": {"hidden_size": 32, "intermediate_size": 64, "layers": 1, "heads": 2}},
    "warm_up": {"sft": {"steps": 40, "batch_size": 8, "learning_rate": 1e-2, "warm_up_steps": 5}},
    "rl": {
        "steps": 10, "groups": 4, "group_size": 8, "learning_rate": 1e-2, "entropy": 0.0, "max_new_tokens": 32,
        "checkpoint_every": 1, "average": 0.5,
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    torch.set_num_threads(1)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def train(folder: Path, **rl: Any) -> Path:
    Pipeline(make_recipe({**GUESS, "rl": {**GUESS["rl"], **rl}}), folder).run()
    return folder


def test_the_curves_of_a_run_go_on_from_stage_to_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for stage, rewards in (("rl", [0.1, 0.2]), ("rl-2", [0.5, 0.4]), ("rl-3", [0.6])):
        (tmp_path / stage).mkdir()
        rows: list[dict[str, Any]] = [{"step": s, "reward": r, "cpu_seconds": s} for s, r in enumerate(rewards)]
        rows += [{"step": 2, "certificate": {"win": 0.5}, "cpu_seconds": 2}] if stage == "rl" else []
        (tmp_path / stage / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    drawn: dict[str, list[tuple[int, float | None]]] = {}

    def plot(axis: Any, rows: list[dict[str, Any]], title: str, curves: dict[str, str]) -> None:
        drawn[title] = [(row["step"], row.get("reward")) for row in rows]

    with monkeypatch.context() as patch:
        patch.setattr("mcpgym_rl.training.curves._plot", plot)
        assert (
            draw_curves(tmp_path, "two", [tmp_path / stage for stage in ("rl", "rl-2", "rl-3")])
            == tmp_path / "curves.png"
        )
    assert drawn["Reward and its components"] == [(0, 0.1), (1, 0.2), (2, None), (2, 0.5), (3, 0.4), (4, 0.6)]
    assert draw_curves(tmp_path / "rl", "one") == tmp_path / "rl" / "curves.png"
    assert draw_curves(tmp_path / "nothing", "none") is None
    with monkeypatch.context() as patch:
        patch.delattr("mcpgym_rl.training.curves._plot")
        assert draw_curves(tmp_path, "one", [tmp_path / "rl"]) == tmp_path / "curves.png"
    assert (tmp_path / "curves.png").read_bytes() == (tmp_path / "rl" / "curves.png").read_bytes()
    assert not list(tmp_path.rglob(".*")), "nothing half written stays"


@pytest.mark.slow
def test_a_new_model_learns_what_pays_from_its_reward_alone(tmp_path: Path) -> None:
    rows = read_metrics(train(tmp_path / "run", steps=14) / "rl")
    assert rows[0]["reward"] < 0.6  # its teacher says anything
    assert sum(row["reward"] for row in rows[-4:]) / 4 > 0.8
    assert max(row["log_ratio"] for row in rows) < 1e-3
    assert (tmp_path / "run" / "rl" / "curves.png").stat().st_size > 10_000
    assert (tmp_path / "run" / "curves.png").read_bytes() == (tmp_path / "run" / "rl" / "curves.png").read_bytes()
    assert any((tmp_path / "run" / "rl" / "tensorboard").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["cispo", "reinforce"])
def test_every_loss_learns_with_one_advantage_a_rollout_over_several_minibatches(loss: str, tmp_path: Path) -> None:
    rows = read_metrics(train(tmp_path / "run", loss=loss, advantage="rollout", scale="std", updates=2) / "rl")
    assert rows[-1]["reward"] > rows[0]["reward"] + 0.2


@pytest.mark.slow
def test_a_batch_sampled_while_the_last_one_is_learnt_from_is_one_update_old_and_learns_too(tmp_path: Path) -> None:
    rows = read_metrics(train(tmp_path / "run", overlap=True, steps=14) / "rl")
    assert rows[0]["log_ratio"] < 1e-3
    assert max(row["log_ratio"] for row in rows[1:]) > 1e-3
    assert rows[-1]["reward"] > rows[0]["reward"] + 0.2


def child(folder: Path, recipe: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "mcpgym_clients", "train"]
    known = ["--resume", str(folder)] if (folder / "recipe.json").exists() else [str(recipe), "--out", str(folder)]
    return subprocess.Popen([*command, *known], env=environment, stderr=subprocess.PIPE)


@pytest.mark.slow
@pytest.mark.timeout(900)  # four runs of training, on a machine that others may use
def test_case_31_a_run_killed_again_and_again_ends_as_one_that_was_left_alone(tmp_path: Path) -> None:
    recipe = tmp_path / "guess.toml"
    recipe.write_text(_toml(GUESS), "utf-8")
    whole = child(tmp_path / "whole", recipe)
    assert whole.wait(400) == 0
    killed = tmp_path / "killed"
    for wanted in (1, 4):
        process = child(killed, recipe)
        deadline = time.monotonic() + 200
        while len(read_metrics(killed / "rl")) < wanted and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        assert not (killed / "model").exists()
    assert child(killed, recipe).wait(300) == 0
    one, other = weights(tmp_path / "whole"), weights(killed)
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    drop = ("cpu_seconds", "sampling_seconds")
    rows = [[{k: v for k, v in row.items() if k not in drop} for row in read_metrics(tmp_path / name / "rl")]
            for name in ("whole", "killed")]  # fmt: skip
    assert rows[0] == rows[1]
    assert [row["step"] for row in rows[0]] == list(range(10))


def test_a_run_with_nothing_left_to_learn_ends_well_and_publishes_its_model(tmp_path: Path) -> None:
    rl = {**GUESS["rl"], "guards": {"no_signal_batches": 2}, "temperature": 0.2}
    outcome = Pipeline(make_recipe({**GUESS, "environment": "guessing_game:Told", "rl": rl}), tmp_path).run()
    assert outcome.finished == "each rollout of the last 2 batches had the highest reward there is"
    assert weights(tmp_path)
    assert len(read_metrics(tmp_path / "rl")) < GUESS["rl"]["steps"]


def test_a_folder_of_another_recipe_is_not_gone_on_with(tmp_path: Path) -> None:
    Pipeline(make_recipe(GUESS), tmp_path)
    with pytest.raises(ConfigurationError, match="another recipe"):
        Pipeline(make_recipe({**GUESS, "seed": 6}), tmp_path)


def test_a_model_that_calls_no_tool_is_stopped_in_its_first_batch_and_what_is_there_is_kept(tmp_path: Path) -> None:
    recipe = make_recipe({**GUESS, "warm_up": None})
    with pytest.raises(TrainingStopped, match=r"no tool call in the first batch.*warm_up"):
        Pipeline(recipe, tmp_path).run()
    assert json.loads((tmp_path / "stages.json").read_text())["initial"] > 0


def _toml(data: dict[str, Any], prefix: str = "") -> str:
    """``data`` as TOML; only what recipes need."""
    values = [f"{key} = {json.dumps(value)}" for key, value in data.items() if not isinstance(value, dict)]
    tables = [(f"{prefix}{key}", value) for key, value in data.items() if isinstance(value, dict)]
    return "\n".join([*values, *(f"\n[{name}]\n{_toml(value, f'{name}.')}" for name, value in tables)])
