"""A real pretrained model, SmolLM2-135M-Instruct, goes the whole way on a CPU: from its GGUF file to a trained model.

Losses and log-probabilities are checked, not skill. All of its layers are there; what is short is the run.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import local_toys
import numpy as np
import pretrained
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.local.hugging_face import HuggingFace
from mcpgym_rl.local.llama import Llama
from mcpgym_rl.local.policy import LocalPolicy
from mcpgym_rl.stop_reason import StopReason
from mcpgym_rl.training.metrics import read_metrics
from mcpgym_rl.training.pipeline import Pipeline
from mcpgym_rl.training.recipe import Recipe, make_recipe
from mcpgym_rl.training.trainer import Trainer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # two minutes of one core, which others may want too
    pytest.mark.skipif(pretrained.PACKAGE is None, reason=pretrained.MISSING),
    pytest.mark.xdist_group("pretrained"),
]


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that is removed: a copy of the model takes half a gigabyte."""
    made = tmp_path_factory.mktemp("pretrained")
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="module")
def smol(shared_folder: Path) -> Path:
    return pretrained.smollm2(shared_folder)


def test_it_plays_through_both_backends_and_says_what_a_whole_forward_says(smol: Path) -> None:
    stock: Any = AutoModelForCausalLM.from_pretrained(smol)
    assert stock.dtype == torch.float32
    assert sum(value.numel() for value in stock.parameters()) == 134_515_008
    asked = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]
    ids = AutoTokenizer.from_pretrained(smol).apply_chat_template(asked, add_generation_prompt=True, return_dict=False)
    directory = open_directory(smol)
    assert not directory.chat.native  # its template drops tools: they are told in the prompt
    numpy = LocalPolicy(directory, temperature=1.0, max_new_tokens=12)
    backend = numpy.engine.backend
    assert isinstance(backend, Llama)
    backend.reserve(1, len(ids) + 1)
    answer = directory.chat.decode([int(np.argmax(backend.append([0], [0], [ids])[0]))])
    assert answer in ("Paris", "The")
    live = LocalPolicy.over(HuggingFace(stock), directory.chat, temperature=1.0, max_new_tokens=12)
    played = local_toys.play(numpy, 1)
    for trace in played:
        assert isinstance(trace.stop_reason, StopReason)
        assert trace.tokens is not None
        assert "<tools>" in directory.chat.decode(trace.tokens.ids)
        assert pretrained.apart(stock, trace) < 1e-3
    (same,) = local_toys.play(live, 1)
    assert same.tokens is not None
    assert played[0].tokens is not None
    assert same.tokens.ids == played[0].tokens.ids  # the same uniform numbers, the same shares
    np.testing.assert_allclose(same.tokens.logprobs, played[0].tokens.logprobs, atol=1e-3)


def recipe(path: Path) -> Recipe:
    sft = {"steps": 4, "batch_size": 1, "learning_rate": 3e-3, "warm_up_steps": 1}
    rl = {
        "steps": 2, "groups": 1, "group_size": 2, "max_new_tokens": 29, "learning_rate": 1e-3, "average": 0.5,
        "checkpoint_every": 1, "train_without_signal": True,
    }  # fmt: skip
    model = {"path": str(path), "lora_rank": 4}
    return make_recipe(
        {"environment": "guessing_game:Guess", "seed": 3, "model": model, "warm_up": {"sft": sft}, "rl": rl}
    )


class Killed(Exception):
    pass


def test_it_is_warmed_up_and_trained_by_adapters_killed_and_gone_on_with(
    smol: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, losses, save = folder / "run", list[float](), Trainer._save

    def told(stage: str, row: Mapping[str, Any]) -> None:
        if stage == "warm-up":
            losses.append(row["loss"])

    def save_and_be_killed(trainer: Trainer) -> None:
        save(trainer)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_save", save_and_be_killed)
        with pytest.raises(Killed):
            Pipeline(recipe(smol), run, told).run()
    assert losses[-1] < losses[0] / 2
    held = torch.load(run / "rl" / "checkpoint.pt", weights_only=True)["now"]
    assert all("lora_" in name for name in (*held["weights"], *held["averaged"]))
    assert (run / "rl" / "checkpoint.pt").stat().st_size < 60_000_000
    (killed,) = read_metrics(run / "rl")
    made = Pipeline(recipe(smol), run).run()
    rows = read_metrics(run / "rl")
    assert [row["step"] for row in rows] == [0, 1]
    assert rows[0] == killed
    assert all(row["log_ratio"] < 1e-3 for row in rows)
    assert all(row["trained_tokens"] > 20 and row["gradient"] > 0 for row in rows)
    whole: Any = AutoModelForCausalLM.from_pretrained(made.model)
    assert not any("lora" in name for name, _ in whole.named_parameters())
    (trace,) = local_toys.play(LocalPolicy(made.model, temperature=1.0, max_new_tokens=12), 1)
    assert pretrained.apart(whole, trace) < 1e-3
