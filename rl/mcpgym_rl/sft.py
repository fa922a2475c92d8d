"""Supervised fine-tuning: a model learns the turns of given games, and nothing else that is in them.

A game is a pair of token ids and a mask of the same length; only tokens whose mask is true are learnt. The loop is
:mod:`mcpgym_rl.sft_loop`; torch is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Game = tuple[Sequence[int], Sequence[bool]]
"""The ids of a whole game, and which of them are to be learnt."""


class SftConfig(BaseModel):
    """How a model is fine-tuned. The defaults are for a new, tiny model; a pretrained one wants a rate near 1e-5."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    steps: int = Field(default=800, gt=0)
    """How many updates."""
    batch_size: int = Field(default=16, gt=0)
    """Games per update. Small ones teach a tiny model faster than large ones."""
    learning_rate: float = Field(default=4e-3, gt=0)
    """The peak."""
    warm_up_steps: int = Field(default=50, ge=0)
    """Over how many steps the rate rises from 0 to it."""
    final_rate: float = Field(default=0.05, ge=0, le=1)
    """Where the cosine that follows ends, as a part of the peak."""
    betas: tuple[float, float] = (0.9, 0.95)
    """Of AdamW."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Of AdamW; norms are spared."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Gradients are scaled down to this norm."""
    average: float = Field(default=0.0, ge=0, lt=1)
    """The decay of averaged weights, which are the result then; 0 for the weights of the last step."""
    micro_batch_tokens: int = Field(default=8_192, gt=0)
    """A batch is worked on in parts of at most so many tokens, padding included; the result is the same."""
    checkpoint_every: int = Field(default=100, gt=0)
    """Steps between checkpoints, where there is a folder for them."""
    seed: int = Field(default=0, ge=0)
    """Of the order in which the games of a list come; it is another in each epoch."""


@dataclass(frozen=True, slots=True)
class SftStep:
    """One update. ``loss`` is the mean over the learnt tokens of its batch, in nats, before it; ``gradient`` the norm
    before it was scaled down; ``tokens`` how many were learnt, ``places`` how many were computed, padding included."""

    step: int
    loss: float
    learning_rate: float
    gradient: float
    tokens: int
    places: int


def fit(
    model: Any,
    games: Iterable[Game],
    config: SftConfig | None = None,
    out: str | Path | None = None,
    *,
    on_step: Callable[[SftStep], None] | None = None,
) -> list[SftStep]:
    """Fine-tune ``model`` in place.

    With ``out``, the run can be killed at any moment: called again with the same arguments (the model as it was at the
    beginning), it goes on from its last checkpoint and ends with the same weights, bit for bit.

    Args:
        model: a causal language model of transformers, bare or with adapters; its trainable parameters are trained.
        games: a sequence, which is gone through in a new order in each epoch; or a stream, from which batches are
            taken as they come. A stream must begin anew with the same games when a run is resumed; those that were
            learnt are passed over.
        config: how.
        out: a folder for ``metrics.jsonl`` and the checkpoint.
        on_step: is called after each update.

    Returns:
        The updates of the whole run, those before it was resumed included.

    Raises:
        ConfigurationError: a game is none, has a token the model does not know, or nothing to learn; there are fewer
            games than the steps need; or ``out`` has the checkpoint of another run.
        FloatingPointError: the loss or the gradient is not finite.
    """
    from mcpgym_rl.sft_loop import Fitting

    return Fitting(model, games, config or SftConfig(), None if out is None else Path(out), on_step).run()
