"""Model directories and what computes them: the numbers of transformers, clear errors, and no code of theirs run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import local_toys
import model_toys
import numpy as np
import pytest
import torch
from local_toys import chat, play, untrained
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM, Gemma3TextConfig, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config
from transformers.models.lfm2.configuration_lfm2 import Lfm2Config

from mcpgym import load_environment
from mcpgym.errors import ConfigurationError
from mcpgym_rl.local.backend import Backend
from mcpgym_rl.local.directory import open_directory
from mcpgym_rl.local.hugging_face import HuggingFace
from mcpgym_rl.local.llama import Llama, LlamaShape, understands
from mcpgym_rl.local.policy import LocalPolicy
from mcpgym_rl.policies import make_policy
from mcpgym_rl.rollout import Limits

SIZES: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def make(config: Any) -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


def numpy_llama(model: Any) -> Llama:
    weights = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    return Llama(LlamaShape.of(model.config.to_dict()), lambda: weights)


def agree(backend: Backend, model: Any, tolerance: float = 2e-4) -> None:
    """Chunks of many lengths in rows here and there, steps among them, copies: each as one whole forward has it."""
    random = np.random.default_rng(0)
    backend.reserve(12, 90)
    contexts: dict[int, list[int]] = {}

    def check(rows: list[int], logits: Any) -> None:
        for place, row in enumerate(rows):
            with torch.no_grad():
                expected = model(torch.tensor([contexts[row]])).logits[0, -1].numpy()
            got = np.asarray(logits[place])
            assert np.abs(got - expected).max() < tolerance * max(1.0, float(np.abs(expected).max()))

    def tokens(count: int) -> list[int]:
        return [int(token) for token in random.integers(3, 97, count)]

    def append(rows: list[int], sizes: list[int]) -> None:
        starts = [len(contexts.get(row, [])) for row in rows]
        chunks = [tokens(size) for size in sizes]
        for row, chunk in zip(rows, chunks, strict=True):
            contexts[row] = contexts.get(row, []) + chunk
        check(rows, backend.append(rows, starts, chunks))

    def step(rows: list[int]) -> None:
        starts, new = [len(contexts[row]) for row in rows], tokens(len(rows))
        for row, token in zip(rows, new, strict=True):
            contexts[row] = [*contexts[row], token]
        check(rows, backend.step(np.array(rows), np.array(new), np.array(starts)))

    append([0, 1, 2, 3], [5, 17, 1, 9])
    append([9, 4, 6], [30, 2, 31])
    step([0, 1, 2, 3])
    step([0, 2, 3])
    step([1, 9])
    step([9])
    append([2, 0, 9], [1, 40, 3])
    step([0, 1, 2, 3, 4, 6, 9])
    backend.copy(0, 11, len(contexts[0]) - 2)
    contexts[11] = contexts[0][:-2]
    backend.load(7, backend.save(9, len(contexts[9])))
    contexts[7] = list(contexts[9])
    append([11, 7], [4, 4])
    backend.reserve(14, 300)
    append([13, 0], [130, 100])
    step([0, 1, 2, 3, 4, 6, 7, 9, 11, 13])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_key_value_heads": 1, "tie_word_embeddings": True},
        {"num_key_value_heads": 4, "head_dim": 6},
        {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}},
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            }
        },
    ],
    ids=["grouped", "one key head, tied", "wide", "linear", "llama3"],
)
def test_the_numpy_llama_computes_what_transformers_computes(changes: dict[str, Any]) -> None:
    model = make(LlamaConfig(**{**SIZES, **changes}))
    assert understands(model.config.to_dict())
    agree(numpy_llama(model), model)


def test_scores_that_lie_far_apart_do_not_vanish() -> None:
    model = make(LlamaConfig(**SIZES))
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight[:8] *= 60
    agree(numpy_llama(model), model, 2e-3)


def test_long_chunks_and_many_rows_are_done_in_parts() -> None:
    model = make(LlamaConfig(**{**SIZES, "max_position_embeddings": 2048}))
    backend = numpy_llama(model)
    ids = [int(token) for token in np.random.default_rng(1).integers(3, 97, 1500)]
    backend.reserve(600, 64)
    logits = backend.append(list(range(600)), [0] * 600, [ids[place : place + 5] for place in range(600)])
    after = backend.step(np.arange(600), np.array(ids[:600]), np.full(600, 5))
    with torch.no_grad():
        given = torch.tensor([[*ids[place : place + 5], ids[place]] for place in range(600)])
        expected = model(given).logits.numpy()
        long = model(torch.tensor([ids])).logits[0, -1].numpy()
    np.testing.assert_allclose(logits, expected[:, 4], atol=2e-4)
    np.testing.assert_allclose(after, expected[:, 5], atol=2e-4)
    backend.reserve(600, 1500)
    np.testing.assert_allclose(backend.append([3], [0], [ids])[0], long, atol=2e-4)


@pytest.mark.parametrize(
    "config",
    [
        LlamaConfig(**SIZES),
        Qwen2Config(**SIZES),
        Qwen3Config(**SIZES, head_dim=8),
        MistralConfig(**SIZES, sliding_window=16),
        Gemma3TextConfig(**SIZES, head_dim=8, sliding_window=16, layer_types=["sliding_attention", "full_attention"]),
    ],
    ids=["llama", "qwen2", "qwen3", "mistral, window", "gemma3, both"],
)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_models_of_transformers_compute_in_rows_what_they_compute_whole(config: Any, attention: str) -> None:
    config._attn_implementation = attention
    model = make(config)
    model.set_attn_implementation(attention)
    agree(HuggingFace(model), model)


def test_layers_with_another_state_are_refused() -> None:
    config = Lfm2Config(**{**SIZES, "layer_types": ["conv", "full_attention"]})
    with pytest.raises(ConfigurationError, match=r"layers of the kind conv.*openai:MODEL@BASE_URL"):
        HuggingFace(make(config))


def test_both_backends_play_alike() -> None:
    model = AutoModelForCausalLM.from_pretrained(model_toys.model_of(local_toys.GAME), dtype=torch.float32)
    slow = LocalPolicy.over(HuggingFace(model), chat(), temperature=1.0, max_new_tokens=12)
    limits = Limits(max_turns=3)
    for one, other in zip(play(slow, 12, limits=limits), play(untrained(), 12, limits=limits), strict=True):
        assert one.tokens is not None
        assert other.tokens is not None
        assert list(one.tokens.ids) == list(other.tokens.ids)
        np.testing.assert_allclose(one.tokens.logprobs, other.tokens.logprobs, atol=1e-4)


def test_a_model_in_training_mode_decodes_without_dropout_and_stays_in_it() -> None:
    model = make(LlamaConfig(**SIZES, attention_dropout=0.5))
    model.train()
    backend = HuggingFace(model, live=True)
    backend.reserve(1, 10)
    first, second = (backend.append([0], [0], [[5, 6, 7]]) for _ in range(2))
    assert torch.equal(first, second)
    assert model.training


# Directories.


def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(model_toys.model_of(local_toys.GAME), tmp_path / "model"))


def rewrite(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer.json", "chat_template.jinja"])
def test_a_missing_file_is_named(missing: str, tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / missing).unlink()
    with pytest.raises(ConfigurationError) as error:
        LocalPolicy(folder)
    assert missing in str(error.value)
    assert str(folder) in str(error.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
def test_a_damaged_file_is_named(name: str, tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / name).write_bytes(b"\x80\x04not what it should be")
    with pytest.raises(ConfigurationError, match=name):
        LocalPolicy(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hidden_size": None}, "no number"),
        ({"num_hidden_layers": 0}, "below 1"),
        ({"num_key_value_heads": 3}, "must be a multiple"),
        ({"vocab_size": 7}, r"embed_tokens.weight is .* config.json makes it \(7"),
        ({"num_hidden_layers": 9}, "weights lack model.layers.3"),
    ],
)
def test_a_configuration_that_does_not_fit_is_an_error(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    folder = copied(tmp_path)
    rewrite(folder / "config.json", **changes)
    with pytest.raises(ConfigurationError, match=words):
        LocalPolicy(folder)


def test_pickles_are_never_opened(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    for kind in ("llama", "mistral"):
        rewrite(folder / "config.json", model_type=kind)
        with pytest.raises(ConfigurationError, match=r"pytorch_model.bin is not read"):
            LocalPolicy(folder)


def test_code_in_a_directory_is_never_run(tmp_path: Path) -> None:
    folder, mark = copied(tmp_path), tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass E: pass\n")
    rewrite(
        folder / "config.json", model_type="evil", auto_map={"AutoModelForCausalLM": "evil.E", "AutoConfig": "evil.E"}
    )
    with pytest.raises(ConfigurationError, match="transformers cannot load"):
        LocalPolicy(folder)
    assert not mark.exists()


def test_weights_in_parts_and_of_other_types_are_read(tmp_path: Path) -> None:
    whole = open_directory(model_toys.model_of(local_toys.GAME)).weights()
    folder = copied(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, inside in parts.items():
        save_file({name: tensors[name] for name in inside}, folder / file)
    index = {"weight_map": {name: file for file, inside in parts.items() for name in inside}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    split = open_directory(folder).weights()
    assert all((split[name] == whole[name]).all() for name in names)
    rewrite(folder / "model.safetensors.index.json", weight_map={names[0]: "../model/a.safetensors"})
    with pytest.raises(ConfigurationError, match="names the file"):
        open_directory(folder).weights()
    from safetensors.torch import save_file as save_torch

    (folder / "model.safetensors.index.json").unlink()
    for kind in (torch.bfloat16, torch.float16):
        save_torch({name: torch.tensor(tensors[name]).to(kind) for name in names}, folder / "model.safetensors")
        read = open_directory(folder).weights()
        assert all((read[name] == torch.tensor(tensors[name]).to(kind).float().numpy()).all() for name in names)
    save_torch({name: torch.tensor(tensors[name]).to(torch.int8) for name in names}, folder / "model.safetensors")
    with pytest.raises(ConfigurationError, match="has the type I8"):
        open_directory(folder).weights()


def test_the_hash_changes_with_whatever_changes_the_play(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    first = open_directory(folder).hash
    assert open_directory(model_toys.model_of(local_toys.GAME)).hash == first
    (folder / "README.md").write_text("A model.")
    assert open_directory(folder).hash == first
    seen = {first}
    for name in ("chat_template.jinja", "tokenizer.json", "config.json"):
        path = folder / name
        path.write_text(path.read_text() + "\n ")
        seen.add(open_directory(folder).hash)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.norm.weight"] = tensors["model.norm.weight"] + 1
    save_file(tensors, folder / "model.safetensors")
    seen.add(open_directory(folder).hash)
    assert len(seen) == 5


# By name.


def test_local_names_a_directory_or_a_shipped_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = load_environment(local_toys.GAME)
    folder = copied(tmp_path)
    policy = make_policy(f"local:{folder}", environment, temperature=0.5, max_tokens=7)
    assert isinstance(policy, LocalPolicy)
    assert (policy.name, policy.temperature, policy.max_new_tokens) == (f"local:{folder}", 0.5, 7)
    module = sys.modules[type(environment).__module__]
    package = tmp_path / "package"
    shutil.copytree(folder, package / "models" / "tiny")
    monkeypatch.setattr(module, "__file__", str(package / "environment.py"))
    assert make_policy("local:tiny", environment).name == "local:tiny"
    with pytest.raises(ConfigurationError, match="tic-tac-toe ships tiny"):
        make_policy("local:tyni", environment)
    with pytest.raises(ConfigurationError, match="none is shipped"):
        make_policy("local:tiny", None)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temperature": -1.0}, "temperature -1.0 must lie between"),
        ({"max_tokens": 0}, "max_new_tokens 0 must lie between"),
        ({"min_p": 2.0}, "min_p 2.0"),
        ({"rows": 0}, "rows 0"),
        ({"mode": "text"}, "no option of local policies 'mode'"),
        ({"device": "cuda"}, "torch finds no GPU" if not torch.cuda.is_available() else "^$"),
        ({"device": "gpu"}, "device 'gpu' is none"),
    ],
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    if options == {"device": "cuda"} and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(ConfigurationError, match=words):
        make_policy(f"local:{model_toys.model_of(local_toys.GAME)}", None, **options)


PLAY = """
import asyncio, os, sys
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.policies import make_policy
from mcpgym_rl.rollout import rollout
policy = make_policy("local:" + sys.argv[1], None, max_tokens=5)
lane = ControlLane(LocalControl(Episodes.of("tic-tac-toe")))
asyncio.run(rollout(policy, lane, environment="tic-tac-toe", split="test"))
print([name for name in ("torch", "transformers") if name in sys.modules], os.environ.get("OPENBLAS_NUM_THREADS"))
with open("/proc/self/status") as file:
    print([line for line in file if line.startswith("Threads")])
"""


@pytest.mark.parametrize("asked", [None, "2"])
def test_a_small_llama_needs_neither_torch_nor_a_second_thread(asked: str | None) -> None:
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environ = {name: value for name, value in os.environ.items() if name not in threads}
    environ |= {"OPENBLAS_NUM_THREADS": asked} if asked else {}
    done = subprocess.run(
        [sys.executable, "-c", PLAY, str(model_toys.model_of(local_toys.GAME))],
        capture_output=True,
        text=True,
        env=environ,
        timeout=60,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first == f"[] {asked}"
    if asked is None and sys.platform == "linux":
        assert "1" in second
