"""What a Llama's ``config.json`` says: its sizes, its rotary frequencies, and whether NumPy computes all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcpgym.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class LlamaShape:
    """The sizes of a Llama, from its ``config.json``."""

    vocabulary: int
    width: int
    inner: int
    layers: int
    heads: int
    key_heads: int
    head_width: int
    positions: int
    epsilon: float
    tied: bool
    frequencies: tuple[float, ...]

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> LlamaShape:
        """The shape that a configuration states.

        Raises:
            ConfigurationError: a size is missing or wrong.
        """
        try:
            heads = int(config["num_attention_heads"])
            width = int(config["hidden_size"])
            head_width = int(config.get("head_dim") or width // heads)
            shape = cls(
                vocabulary=int(config["vocab_size"]),
                width=width,
                inner=int(config["intermediate_size"]),
                layers=int(config["num_hidden_layers"]),
                heads=heads,
                key_heads=int(config.get("num_key_value_heads") or heads),
                head_width=head_width,
                positions=int(config.get("max_position_embeddings", 2048)),
                epsilon=float(config.get("rms_norm_eps", 1e-6)),
                tied=bool(config.get("tie_word_embeddings", False)),
                frequencies=tuple(map(float, _frequencies(config, head_width))),
            )
        except KeyError as error:
            raise ConfigurationError(f"config.json lacks {error}") from None
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise ConfigurationError(f"config.json has a size that is no number: {error}") from None
        if min(shape.vocabulary, width, shape.inner, shape.layers, heads, shape.key_heads, shape.positions) < 1:
            raise ConfigurationError("config.json has a size below 1")
        if heads % shape.key_heads or head_width % 2:
            raise ConfigurationError(
                f"config.json: {heads} heads must be a multiple of {shape.key_heads} key heads, and the head width "
                f"{head_width} even"
            )
        return shape

    @property
    def parameters(self) -> int:
        """How many numbers the model has, norms left out."""
        attention = self.width * self.head_width * (2 * self.heads + 2 * self.key_heads)
        ends = self.vocabulary * self.width * (1 if self.tied else 2)
        return self.layers * (attention + 3 * self.width * self.inner) + ends


def understands(config: Mapping[str, Any]) -> bool:
    """Whether this file computes what a configuration describes."""
    rope = _rope(config)
    return (
        config.get("model_type") == "llama"
        and config.get("hidden_act", "silu") in ("silu", "swish")
        and not config.get("attention_bias")
        and not config.get("mlp_bias")
        and not config.get("quantization_config")
        and config.get("pretraining_tp", 1) in (None, 1)
        and rope.get("rope_type", "default") in ("default", "linear", "llama3")
        and float(rope.get("partial_rotary_factor", 1.0)) == 1.0
    )


def _rope(config: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of the rotary embedding, in the form of transformers 5 or of before."""
    said = config.get("rope_parameters") or config.get("rope_scaling") or {}
    rope = dict(said) if isinstance(said, Mapping) else {}
    rope.setdefault("rope_type", rope.get("type", "default"))
    rope.setdefault("rope_theta", config.get("rope_theta", 10_000.0))
    return rope


def _frequencies(config: Mapping[str, Any], head_width: int) -> NDArray[np.float64]:
    """Radians a token for each pair of a head (RoFormer, arXiv 2104.09864; scaled as Llama 3.1 where asked for)."""
    rope = _rope(config)
    made = float(rope["rope_theta"]) ** -(np.arange(0, head_width, 2) / head_width)
    if rope["rope_type"] == "linear":
        return made / float(rope["factor"])
    if rope["rope_type"] == "llama3":
        factor, low, high = (float(rope[name]) for name in ("factor", "low_freq_factor", "high_freq_factor"))
        turns = float(rope["original_max_position_embeddings"]) * made / (2 * np.pi)
        smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
        return (1 - smooth) * made / factor + smooth * made
    return made
