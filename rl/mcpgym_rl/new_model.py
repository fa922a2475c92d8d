"""A new, tiny model for an environment: a Llama of some 0.2 million parameters with a tokenizer of its own.

It is a plain Hugging Face directory, of files that execute nothing::

    config.json  generation_config.json  model.safetensors  tokenizer.json  tokenizer_config.json  chat_template.jinja

Stock ``AutoModelForCausalLM`` and ``AutoTokenizer`` load it. Neither torch nor transformers is needed to make it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError
from mcpgym_rl.tiny.template import CONTROL_TOKENS, END, END_OF_TEXT, TEMPLATE

TRANSCRIPTS = 300
"""How many rollouts a tokenizer is trained on."""
TRANSCRIPT_SEED = 0
"""Of those rollouts: the tokenizer depends on the environment alone, and models of different seeds share it."""


class ModelSize(BaseModel):
    """The size of a new model."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    hidden_size: int = Field(default=64, ge=8, le=8192)
    """The width of the residual stream."""
    intermediate_size: int = Field(default=128, ge=8, le=65_536)
    """The width inside the feed-forward layers."""
    layers: int = Field(default=3, ge=1, le=128)
    """How many layers."""
    heads: int = Field(default=4, ge=1, le=256)
    """Attention heads; each has hidden_size / heads dimensions, an even number."""
    key_value_heads: int = Field(default=1, ge=1, le=256)
    """Heads with keys and values of their own; the others share them (arXiv 2305.13245). One makes decoding fast."""
    vocabulary: int = Field(default=1_024, ge=259, le=1_000_000)
    """How many tokens the tokenizer may have; it takes fewer where it needs no more."""
    max_positions: int = Field(default=2_048, ge=64, le=1_000_000)
    """The longest context, in tokens."""
    rope_theta: float = Field(default=300.0, gt=1)
    """The base of the rotary embedding's wavelengths; the usual 10,000 is for contexts far longer than games have."""
    init_std: float | None = Field(default=None, gt=0)
    """The standard deviation of the first weights; 1 / √hidden_size where none is given."""

    @property
    def standard_deviation(self) -> float:
        """Of the first weights."""
        return self.init_std or 1 / math.sqrt(self.hidden_size)

    @model_validator(mode="after")
    def _whole_heads(self) -> Self:
        if self.hidden_size % (2 * self.heads):
            raise ValueError(f"hidden_size {self.hidden_size} must be a multiple of twice the heads, {2 * self.heads}")
        if self.heads % self.key_value_heads:
            raise ValueError(f"heads {self.heads} must be a multiple of key_value_heads {self.key_value_heads}")
        return self


def new_model(
    environment: Environment[Any, Any, Any], out: str | Path, *, seed: int = 0, size: ModelSize | None = None
) -> Path:
    """Make an untrained model for ``environment`` in the directory ``out``, which must be empty or not exist.

    Args:
        environment: whose transcripts the tokenizer is trained on.
        out: where the model goes.
        seed: of the first weights. The tokenizer depends on the environment alone.
        size: how large it is.

    Returns:
        ``out``.

    Raises:
        ConfigurationError: ``out`` is a file, or has something in it.
        EpisodeError: the environment broke, so that there are no transcripts.
    """
    from safetensors.numpy import save_file

    from mcpgym_rl.local.chat import shown
    from mcpgym_rl.local.template import Template
    from mcpgym_rl.policies.chat_format import native_tools
    from mcpgym_rl.tiny.tokenizer import train_tokenizer
    from mcpgym_rl.tiny.transcripts import make_transcripts
    from mcpgym_rl.tiny.weights import first_weights

    folder, size = Path(out), size or ModelSize()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"{folder} is there already; name a folder that is empty or does not exist")
    tools = native_tools([tool.listing for tool in environment.tools.values()])
    transcripts = make_transcripts(environment, TRANSCRIPTS, TRANSCRIPT_SEED)
    template = Template(TEMPLATE, {}, "new models")
    texts = (template.render(shown(trace.messages), tools or None, prompt=False) for trace in transcripts)
    tokenizer = train_tokenizer(texts, size.vocabulary)
    vocabulary = tokenizer.get_vocab_size()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(tokenizer.to_str(pretty=True) + "\n", "utf-8")
    (folder / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    _write(folder / "tokenizer_config.json", _tokenizer_config(size))
    _write(folder / "config.json", _config(size, vocabulary))
    _write(folder / "generation_config.json", {**_token_ids(), "do_sample": True, "temperature": 1.0})
    save_file(first_weights(size, vocabulary, seed), folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", "utf-8")


def _token_ids() -> dict[str, int]:
    ids = {token: place for place, token in enumerate(CONTROL_TOKENS)}
    return {"bos_token_id": ids[END_OF_TEXT], "eos_token_id": ids[END], "pad_token_id": ids[END_OF_TEXT]}


def _tokenizer_config(size: ModelSize) -> dict[str, Any]:
    from mcpgym_rl.local.reading import HERMES

    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END_OF_TEXT,
        "eos_token": END,
        "pad_token": END_OF_TEXT,
        "clean_up_tokenization_spaces": False,
        "model_max_length": size.max_positions,
        "response_template": HERMES,
    }


def _config(size: ModelSize, vocabulary: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": size.hidden_size,
        "intermediate_size": size.intermediate_size,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "num_key_value_heads": size.key_value_heads,
        "head_dim": size.hidden_size // size.heads,
        "max_position_embeddings": size.max_positions,
        "rope_theta": size.rope_theta,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": size.standard_deviation,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        **_token_ids(),
    }
