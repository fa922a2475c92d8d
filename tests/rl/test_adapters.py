"""Training by adapters: what is frozen is shared and stays, what is sampled is what is trained, and it ends merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import local_toys
import model_toys
import pytest
import torch
from safetensors.torch import load_file

from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.local.hugging_face import HuggingFace
from mcpgym_rl.local.llama import Llama
from mcpgym_rl.local.policy import LocalPolicy
from mcpgym_rl.traces import Trace
from mcpgym_rl.training.guards import TrainingStopped
from mcpgym_rl.training.metrics import read_metrics
from mcpgym_rl.training.models import copy_model, load_model, save_model
from mcpgym_rl.training.pipeline import Pipeline
from mcpgym_rl.training.recipe import make_recipe
from mcpgym_rl.training.sections import ModelSection
from mcpgym_rl.training.updating import average

IDS = torch.arange(100, 140)[None]


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    torch.set_num_threads(1)


def adapted(seed: int = 0) -> Any:
    path = model_toys.model_of(local_toys.GAME)
    return load_model(path, ModelSection(path=str(path), lora_rank=4), seed)[0]


def trained(model: Any) -> dict[str, torch.Tensor]:
    return {name: value for name, value in model.named_parameters() if value.requires_grad}


def stir(model: Any) -> None:
    """Change the adapters, as training would."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for value in trained(model).values():
            value += 0.1 * torch.randn(value.shape, generator=generator)


def scores(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model(input_ids=IDS).logits.clone()


def test_adapters_change_nothing_at_first_and_are_those_of_the_seed() -> None:
    path = model_toys.model_of(local_toys.GAME)
    plain, _ = load_model(path, ModelSection(path=str(path)))
    state = torch.get_rng_state()
    model = adapted(5)
    assert torch.equal(torch.get_rng_state(), state)
    torch.testing.assert_close(scores(model), scores(plain))
    assert all("lora_" in name for name in trained(model))
    same, other = trained(adapted(5)), trained(adapted(6))
    assert all(torch.equal(value, same[name]) for name, value in trained(model).items())
    assert not all(torch.equal(value, other[name]) for name, value in trained(model).items())


def test_a_copy_shares_what_is_frozen_and_nothing_that_is_trained() -> None:
    model = adapted()
    copied = copy_model(model)
    for (name, value), (_, other) in zip(model.named_parameters(), copied.named_parameters(), strict=True):
        assert (value is other) == (not value.requires_grad), name
    before = scores(copied)
    stir(model)
    assert torch.equal(scores(copied), before)
    average(copied, model, 0.0)
    assert torch.equal(scores(copied), scores(model))
    plain = copy_model(model.get_base_model().requires_grad_(True))
    assert not {id(value) for value in plain.parameters()} & {id(value) for value in model.parameters()}


def test_the_sampler_sees_the_adapters_as_they_are_now() -> None:
    model, chat = adapted().train(), local_toys.chat()
    policy = LocalPolicy.from_torch(model, chat, max_new_tokens=8)
    assert isinstance(policy.engine.backend, HuggingFace)
    for _ in range(2):
        traces = local_toys.play(policy, 2)
        assert model.training
        assert agreement(model, traces) < 1e-4
        stir(model)
    assert agreement(model, traces) > 1e-3


def agreement(model: Any, traces: list[Trace]) -> float:
    """The largest difference between a sampled token's log-probability and that of a whole forward."""
    largest = 0.0
    for trace in traces:
        assert trace.tokens is not None
        ids = torch.tensor(trace.tokens.ids)
        with torch.no_grad():
            logs = model(input_ids=ids[None]).logits[0].log_softmax(-1)
        places = torch.tensor(trace.tokens.mask).nonzero()[:, 0]
        sampled = torch.tensor(trace.tokens.logprobs)[places]
        largest = max(largest, float((logs[places - 1, ids[places]] - sampled).abs().max()))
    return largest


def test_a_saved_model_has_its_adapters_merged_and_the_trained_one_keeps_them(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for file in model_toys.model_of(local_toys.GAME).iterdir():
        (source / file.name).write_bytes(file.read_bytes())
    (source / "pytorch_model.bin").write_bytes(b"old weights")
    model = adapted()
    stir(model)
    before = scores(model)
    save_model(model, source, tmp_path / "made")
    assert torch.equal(scores(model), before)
    assert {item.name for item in (tmp_path / "made").iterdir()} == {
        item.name for item in model_toys.model_of(local_toys.GAME).iterdir()
    }
    names = load_file(tmp_path / "made" / "model.safetensors").keys()
    assert set(names) == set(load_file(source / "model.safetensors").keys())
    whole, _ = load_model(tmp_path / "made", ModelSection())
    torch.testing.assert_close(scores(whole), before, atol=1e-4, rtol=1e-4)
    policy = LocalPolicy(open_directory(tmp_path / "made"), temperature=1.0, max_new_tokens=8)
    assert isinstance(policy.engine.backend, Llama)
    assert agreement(model, local_toys.play(policy, 2)) < 1e-3


RECIPE: dict[str, Any] = {
    "environment": "guessing_game:Guess",
    "seed": 5,
    "rl": {"steps": 3, "groups": 2, "group_size": 4, "learning_rate": 1e-2, "entropy": 0.0, "max_new_tokens": 32,
           "checkpoint_every": 1, "average": 0.5},
}  # fmt: skip


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that can say a number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        folder = tmp_path_factory.mktemp("adapters")
        new = {"hidden_size": 32, "intermediate_size": 64, "layers": 1, "heads": 2}
        sft = {"steps": 40, "batch_size": 8, "learning_rate": 1e-2, "warm_up_steps": 5}
        first = {"environment": RECIPE["environment"], "model": {"new": new}, "warm_up": {"sft": sft}}
        return Pipeline(make_recipe(first), folder / "run").run().model


def recipe(path: Path, **rl: Any) -> Any:
    return make_recipe({**RECIPE, "model": {"path": str(path), "lora_rank": 4}, "rl": {**RECIPE["rl"], **rl}})


class Killed(Exception):
    pass


def kill_in(step: int) -> Callable[[str, Mapping[str, Any]], None]:
    def told(stage: str, row: Mapping[str, Any]) -> None:
        if stage == "rl" and row["step"] == step:
            raise Killed

    return told


@pytest.mark.slow
def test_a_run_with_adapters_is_gone_on_with_and_its_checkpoint_has_nothing_else(
    speaking: Path, tmp_path: Path
) -> None:
    whole = Pipeline(recipe(speaking), tmp_path / "whole").run()
    with pytest.raises(Killed):
        Pipeline(recipe(speaking), tmp_path / "killed", kill_in(1)).run()
    held = torch.load(tmp_path / "killed" / "rl" / "checkpoint.pt", weights_only=True)["now"]
    assert held["weights"].keys() == held["averaged"].keys()
    assert all("lora_" in name for name in held["weights"])
    again = Pipeline(recipe(speaking), tmp_path / "killed").run()
    one, other = (load_file(made.model / "model.safetensors") for made in (whole, again))
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert max(row["log_ratio"] for row in read_metrics(tmp_path / "killed" / "rl")) < 1e-3
    before = load_file(speaking / "model.safetensors")
    assert not all(torch.equal(value, before[name]) for name, value in one.items())


@pytest.mark.slow
def test_where_all_rewards_are_alike_nothing_is_learnt_and_training_ends_with_the_reason(
    speaking: Path, tmp_path: Path
) -> None:
    alike = {"components": {"paid": 0.0}}
    with pytest.raises(TrainingStopped, match="no group of the last 2 batches had rewards that differ"):
        Pipeline(recipe(speaking, rewards=alike, guards={"no_signal_batches": 2}), tmp_path / "stopped").run()
    made = Pipeline(recipe(speaking, rewards=alike, train_without_signal=True), tmp_path / "run").run()
    assert made.finished == "steps"
    after, before = load_file(made.model / "model.safetensors"), load_file(speaking / "model.safetensors")
    assert all(torch.equal(value, before[name]) for name, value in after.items())
