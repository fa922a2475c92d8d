"""GGUF files, written here by the format's own package, become directories that compute the same."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gguf
import model_toys
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from mcpgym.errors import ConfigurationError
from mcpgym_rl.gguf import import_gguf
from mcpgym_rl.local.directory import open_directory

SOURCE = "tic-tac-toe"


def write_gguf(path: Path, *, template: bool = True, architecture: str = "llama") -> Path:
    """The toys' new model as llama.cpp's converter writes a Llama: matrices in 16-bit floats, norms in 32."""
    folder = model_toys.model_of(SOURCE)
    directory = open_directory(folder)
    config, tokenizer = directory.config, json.loads((folder / "tokenizer.json").read_text("utf-8"))
    heads, key_heads = config["num_attention_heads"], config["num_key_value_heads"]
    writer = gguf.GGUFWriter(str(path), architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(key_heads)
    writer.add_rope_freq_base(directory.config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("gpt2")
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])
    special = {item["id"] for item in tokenizer["added_tokens"]}
    writer.add_token_list([token for token, _ in vocabulary])
    writer.add_token_types([3 if place in special else 1 for _, place in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    if template:
        writer.add_chat_template(directory.templates["default"])
    for name, value in directory.weights().items():
        if "q_proj" in name or "k_proj" in name:
            count = heads if "q_proj" in name else key_heads
            value = value.reshape(count, 2, -1, value.shape[1]).swapaxes(1, 2).reshape(value.shape)  # as it rotates
        writer.add_tensor(_gguf_name(name), value if value.ndim == 1 else value.astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _gguf_name(name: str) -> str:
    made = name.removeprefix("model.").replace("layers.", "blk.")
    for theirs, ours in (
        ("embed_tokens", "token_embd"), ("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"), ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ):  # fmt: skip
        made = made.replace(theirs, ours)
    return made.replace("norm.weight", "output_norm.weight") if made == "norm.weight" else made


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gguf")
    return import_gguf(write_gguf(folder / "tiny.gguf"), folder / "made")


def test_what_comes_out_computes_what_went_in(imported: Path) -> None:
    ids = torch.arange(100, 140)[None]
    before: Any = AutoModelForCausalLM.from_pretrained(model_toys.model_of(SOURCE))
    after: Any = AutoModelForCausalLM.from_pretrained(imported)
    with torch.no_grad():
        torch.testing.assert_close(after(ids).logits, before(ids).logits, atol=2e-2, rtol=2e-3)  # 16-bit floats
    assert after.dtype == torch.float32
    assert not hasattr(after.config, "quantization_config")
    assert after.config.eos_token_id == before.config.eos_token_id


def test_its_tokenizer_and_its_template_are_those_of_the_file(imported: Path) -> None:
    source = open_directory(model_toys.model_of(SOURCE))
    made = open_directory(imported)
    assert made.templates["default"] == source.templates["default"]
    messages = [{"role": "user", "content": "<tools>"}, {"role": "assistant", "content": "a game"}]
    stock = AutoTokenizer.from_pretrained(imported)
    ids = stock.apply_chat_template(messages, tokenize=True, return_dict=False)
    assert stock.decode(ids) == stock.apply_chat_template(messages, tokenize=False)
    assert ids == made.chat.whole(messages, [])  # type: ignore[arg-type]
    assert made.chat.end_ids == source.chat.end_ids
    assert made.chat.native


def test_the_directory_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "notes").write_text("mine")
    with pytest.raises(ConfigurationError, match="is there already"):
        import_gguf(file, tmp_path / "there")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(file.read_bytes()[:-20_000])
    with pytest.raises(ConfigurationError, match=r"cut\.gguf cannot be read: "):
        import_gguf(cut, tmp_path / "out")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["cut.gguf", "there", "tiny.gguf"]


def test_what_is_no_model_to_play_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        import_gguf(tmp_path / "none.gguf", tmp_path / "out")
    (tmp_path / "text.gguf").write_text("GGML, or something")
    with pytest.raises(ConfigurationError, match="does not begin with the letters GGUF"):
        import_gguf(tmp_path / "text.gguf", tmp_path / "out")
    base = write_gguf(tmp_path / "base.gguf", template=False)
    with pytest.raises(ConfigurationError, match=r"base\.gguf cannot be played: .*no chat template"):
        import_gguf(base, tmp_path / "out")
    strange = write_gguf(tmp_path / "strange.gguf", architecture="mamba9")
    with pytest.raises(ConfigurationError, match=r"strange\.gguf cannot be read: .*mamba9"):
        import_gguf(strange, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_gguf(tmp_path / "tiny.gguf")
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'mcpgym\[rl\]'.*accelerate"):
        import_gguf(file, tmp_path / "out")
