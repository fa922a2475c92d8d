"""Small GGUF files, written by the format's own package."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import model_toys
import numpy as np

from mcpgym_rl.local.directory import open_directory

SOURCE = "tic-tac-toe"


def write_gguf(
    path: Path, *, template: bool | str = True, architecture: str = "llama", source: Path | None = None
) -> Path:
    """A model as llama.cpp's converter writes a Llama: matrices in 16-bit floats, norms in 32.

    Args:
        path: the file.
        template: the chat template; True for the model's own, False for none.
        architecture: what the file says it is.
        source: the model's directory; the toys' new model where none is given.
    """
    folder = source or model_toys.model_of(SOURCE)
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
        writer.add_chat_template(template if isinstance(template, str) else directory.templates["default"])
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
