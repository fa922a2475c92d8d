"""A tiny model and games that it can learn."""

from __future__ import annotations

from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from mcpgym_rl.sft import Game


def tiny(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=40,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=True,
        initializer_range=0.25,
    )
    return LlamaForCausalLM(config)


def copies(count: int, seed: int = 0) -> list[Game]:
    """Games in which the token after 3 is the one that stood first: it alone is to be learnt."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for _ in range(count):
        length = int(torch.randint(2, 8, (), generator=generator))
        first = int(torch.randint(10, 16, (), generator=generator))
        noise = torch.randint(20, 40, (length,), generator=generator).tolist()
        made.append(([first, *noise, 3, first, 5, 5], [False] * (length + 2) + [True, False, False]))
    return made


def weights(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}
