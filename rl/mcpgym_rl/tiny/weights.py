"""The first weights of a new model: a Llama, random, made without torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcpgym_rl.new_model import ModelSize


OUTPUTS = ("o_proj.weight", "down_proj.weight")
OUTPUT_SCALE = 0.2


def first_weights(size: ModelSize, vocabulary: int, seed: int) -> dict[str, NDArray[np.float32]]:
    """The tensors of a LlamaForCausalLM by name, as ``model.safetensors`` has them (output tied to the embedding).

    Matrices are normal with the standard deviation 1 / √hidden_size, or ``size.init_std``; norms are 1. Much smaller
    ones, as are usual for large models, leave a tiny one unable to learn to copy. Those that write a layer's output
    have a fifth of it: else what random layers add drowns what the tokens are.
    """
    import numpy as np

    random = np.random.Generator(np.random.PCG64(seed))
    made: dict[str, NDArray[np.float32]] = {}
    for name, shape in _shapes(size, vocabulary):
        if len(shape) == 1:
            made[name] = np.ones(shape, np.float32)
        else:
            scale = size.standard_deviation * (OUTPUT_SCALE if name.endswith(OUTPUTS) else 1.0)
            made[name] = random.standard_normal(shape, np.float32) * np.float32(scale)
    return made


def _shapes(size: ModelSize, vocabulary: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    hidden, inner = size.hidden_size, size.intermediate_size
    keys = hidden // size.heads * size.key_value_heads
    yield "model.embed_tokens.weight", (vocabulary, hidden)
    for layer in range(size.layers):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (hidden,)
        yield at + "self_attn.q_proj.weight", (hidden, hidden)
        yield at + "self_attn.k_proj.weight", (keys, hidden)
        yield at + "self_attn.v_proj.weight", (keys, hidden)
        yield at + "self_attn.o_proj.weight", (hidden, hidden)
        yield at + "post_attention_layernorm.weight", (hidden,)
        yield at + "mlp.gate_proj.weight", (inner, hidden)
        yield at + "mlp.up_proj.weight", (inner, hidden)
        yield at + "mlp.down_proj.weight", (hidden, inner)
    yield "model.norm.weight", (hidden,)
