"""Training with TRL, really: it learns from our rollouts, goes on where it was, and trains on what was sampled."""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from trl_toys import begun, recipe

from mcpgym.errors import ConfigurationError
from mcpgym_clients.cli import main
from mcpgym_rl.traces import read_traces
from mcpgym_rl.training.guards import TrainingStopped
from mcpgym_rl.training.metrics import read_metrics
from mcpgym_rl.trl.pipeline import TrlPipeline

trl = pytest.importorskip("trl")
pytestmark = pytest.mark.slow
HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    torch.set_num_threads(1)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Curves are drawn at the end of each run, which takes longer than these runs."""
    monkeypatch.setattr("mcpgym_rl.trl.pipeline.draw_curves", lambda folder, title: None)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has its warm-up behind it."""
    folder = tmp_path_factory.mktemp("warm") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        torch.set_num_threads(1)
        made = recipe()
        TrlPipeline(made.model_copy(update={"rl": None}), folder).run()
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")


def plain(folder: Path) -> list[dict[str, Any]]:
    """The metrics without what is measured in seconds."""
    drop = ("cpu_seconds", "sampling_seconds", "trl")
    return [{name: value for name, value in row.items() if name not in drop} for row in read_metrics(folder / "rl")]


class Stopped(Exception):
    """The run was killed here."""


@pytest.mark.usefixtures("undrawn")
def test_case_31_a_run_learns_and_one_that_was_stopped_ends_as_one_that_was_left_alone(
    warm: Path, tmp_path: Path
) -> None:
    made = recipe(steps=4, updates=2, group_size=6, loss="cispo")
    whole = begun(warm, tmp_path / "whole")
    TrlPipeline(made, whole).run()
    rows = read_metrics(whole / "rl")
    assert [row["step"] for row in rows] == list(range(4))
    assert rows[-1]["reward"] > rows[0]["reward"] + 0.2
    assert max(row["log_ratio"] for row in rows) < 1e-3
    assert rows[0]["learning_rate"] > rows[-1]["learning_rate"] > 0
    assert len(read_traces(whole / "rl" / "traces.jsonl")) == 24

    stopped = begun(warm, tmp_path / "stopped")

    def stop(stage: str, row: Any) -> None:
        if row["step"] == 2:
            raise Stopped

    with pytest.raises(Stopped):
        TrlPipeline(made, stopped, stop).run()
    assert not (stopped / "model").exists()
    newest = max((stopped / "rl").glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    (newest / "trainer_state.json").unlink()  # as if it had been killed while it wrote that one
    TrlPipeline(made, stopped).run()
    assert plain(stopped) == plain(whole)
    one, other = weights(whole), weights(stopped)
    assert all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.usefixtures("undrawn")
def test_case_22_ids_that_were_not_sampled_in_this_batch_are_not_trained_on(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcpgym_rl.trl.rollouts import Rollouts

    real = Rollouts.__call__

    def other(self: Rollouts, prompts: list[str], trainer: Any) -> dict[str, Any]:
        made = real(self, prompts, trainer)
        made["completion_ids"][0] = [*made["completion_ids"][0][:-1], 3]  # as a tokenizer would that saw the text
        return made

    monkeypatch.setattr(Rollouts, "__call__", other)
    with pytest.raises(AssertionError, match="ids that were not sampled"):
        TrlPipeline(recipe(), begun(warm, tmp_path / "run")).run()


@pytest.mark.usefixtures("undrawn")
def test_a_sampler_that_disagrees_with_the_trainer_stops_the_run(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcpgym_rl.trl import rollouts

    real = rollouts.as_row

    def off(trace: Any, pad: int, **rest: Any) -> Any:
        row, logprobs = real(trace, pad, **rest)
        return row, [value - 0.1 for value in logprobs]

    monkeypatch.setattr(rollouts, "as_row", off)
    with pytest.raises(TrainingStopped, match=r"sampler and trainer differ by 0\.1"):
        TrlPipeline(recipe(), begun(warm, tmp_path / "run")).run()


@pytest.mark.usefixtures("undrawn")
def test_a_run_with_nothing_left_to_learn_ends_well_with_its_model(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpgym_rl.trl.rollouts.all_perfect", lambda *_: True)
    run = begun(warm, tmp_path / "run")
    outcome = TrlPipeline(recipe(guards={"no_signal_batches": 2}), run).run()
    assert outcome.finished == "each rollout of the last 2 batches had the highest reward there is"
    assert len(read_metrics(run / "rl")) == 1
    assert weights(run)


@pytest.mark.usefixtures("undrawn")
def test_a_batch_without_a_signal_leaves_the_weights_as_they_are(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewards that differ in the first batch alone; AdamW's momentum would go on moving the weights after it."""
    from mcpgym_rl.trl import rollouts

    batches: list[int] = []
    real = rollouts.Rollouts._played

    def played(self: Any, specs: Any, trainer: Any) -> Any:
        batches.append(1)
        return real(self, specs, trainer)

    monkeypatch.setattr(rollouts.Rollouts, "_played", played)
    first = rollouts.reward_of
    monkeypatch.setattr(
        rollouts, "reward_of", lambda trace, rewards: first(trace, rewards) if len(batches) < 2 else 0.3
    )
    run = begun(warm, tmp_path / "run")
    TrlPipeline(recipe(steps=3, groups=4, group_size=6, schedule="constant"), run).run()
    after = {int(path.name[11:]): load_file(path / "model.safetensors") for path in (run / "rl").glob("checkpoint-*")}
    assert all(torch.equal(value, after[3][name]) for name, value in after[2].items())
    start = load_file(run / "warmed-up" / "model.safetensors")
    assert not all(torch.equal(value, after[2][name]) for name, value in start.items()), "the first batch was learnt"


@pytest.mark.usefixtures("undrawn")
def test_case_29_a_rollout_whose_worth_is_unknown_is_masked_not_zero_and_not_printed(
    warm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first of each group; one optimizer that TRL would want a package for is refused before that, in words."""
    from mcpgym_rl.trl import rollouts
    from mcpgym_rl.trl.trainer import Trainer

    with pytest.raises(ConfigurationError, match=r"TRL lacks a package for this run: .*bitsandbytes"):
        TrlPipeline(recipe({"optim": "adamw_8bit"}, steps=1), begun(warm, tmp_path / "8bit")).run()
    worths: list[float | None] = []
    made: list[dict[str, torch.Tensor]] = []
    real, generate = rollouts.reward_of, Trainer._generate_and_score_completions

    def unknown(trace: Any, rewards: Any) -> float | None:
        worths.append(None if len(worths) % 4 == 0 else real(trace, rewards))
        return worths[-1]

    def kept(trainer: Trainer, inputs: Any) -> Any:
        made.append(generate(trainer, inputs))
        return made[-1]

    monkeypatch.setattr(rollouts, "reward_of", unknown)
    monkeypatch.setattr(Trainer, "_generate_and_score_completions", kept)
    logging.getLogger("trl").addHandler(caplog.handler)
    TrlPipeline(recipe(steps=1), begun(warm, tmp_path / "run")).run()
    logging.getLogger("trl").removeHandler(caplog.handler)
    (batch,) = made
    for place, worth in enumerate(worths):
        trained = int((batch["tool_mask"] * batch["completion_mask"])[place].sum())
        others = [other for other in worths[place // 4 * 4 :][:4] if other is not None]
        assert (trained == 0) == (worth is None)
        wanted = 0.0 if worth is None else worth - sum(others) / 3
        assert float(batch["advantages"][place]) == pytest.approx(wanted, abs=1e-6)
    assert len(set(batch["advantages"].tolist())) > 2
    assert "returned None" not in caplog.text
    assert read_metrics(tmp_path / "run" / "rl")[0]["reward"] == pytest.approx(
        sum(worth for worth in worths if worth is not None) / 12
    )


def test_adapters_are_trained_by_the_command_and_merged_into_the_model(
    warm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = str(warm / "warmed-up")
    file = tmp_path / "lora.toml"
    file.write_text(
        f'environment = "guessing_game:Guess"\n[model]\npath = {json.dumps(base)}\nlora_rank = 2\n'
        "[rl]\nsteps = 2\ngroups = 2\ngroup_size = 4\nlearning_rate = 0.05\nmax_new_tokens = 32\n"
        '[trl]\nloss_type = "dr_grpo"\nmax_completion_length = 64\n'
    )
    out = tmp_path / "out"
    assert main(["train", "--engine", "trl", str(file), "--out", str(out)]) == 0, capsys.readouterr().err
    before, after = load_file(Path(base) / "model.safetensors"), weights(out)
    assert before.keys() == after.keys()
    assert any(not torch.equal(value, after[name]) for name, value in before.items())
    assert (out / "rl" / "curves.png").stat().st_size > 10_000
    newest = max((out / "rl").glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    assert (newest / "adapter_model.safetensors").is_file()
    assert main(["train", "--resume", str(out)]) == 0, "a run that is at its end stays there"
    shutil.rmtree(out / "model")
    assert main(["train", "--resume", str(out), "--engine", "own"]) == 2
    assert "begun with --engine trl" in capsys.readouterr().err
