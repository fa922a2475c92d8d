"""One update of the weights from one batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mcpgym_rl.sft_loop import parts
from mcpgym_rl.training import losses
from mcpgym_rl.training.batch import Batch, Sequences
from mcpgym_rl.training.sections import Rl


@dataclass(frozen=True, slots=True)
class Update:
    """What an update did. ``entropy`` is the mean over the trained tokens, in nats; ``log_ratio`` the largest absolute
    difference of sampler and trainer before the step; ``gradient`` the norm before it was scaled down."""

    loss: float
    entropy: float
    log_ratio: float
    gradient: float
    clipped: float
    kl: float
    tokens: int


def sampled_logits(model: nn.Module, sequences: Sequences) -> Tensor:
    """The logits that chose each sampled token, at its temperature: (tokens, vocabulary), in float32.

    The vocabulary is projected at those places alone, and the common prefix goes through the layers once: both are
    most of a small model's work saved, and neither changes a gradient.
    """
    decoder, head = parts(model)
    cache = _prefix_cache(decoder, sequences)
    ids = sequences.ids if cache is not None else _whole(sequences)
    hidden = decoder(input_ids=ids, past_key_values=cache, use_cache=cache is not None).last_hidden_state
    if cache is None:
        hidden = hidden[:, len(sequences.prefix) :]
    chosen = hidden.flatten(0, 1)[sequences.places]
    logits: Tensor = head(chosen)
    return logits.float() / sequences.temperatures[:, None]


def _whole(sequences: Sequences) -> Tensor:
    return torch.cat([sequences.prefix.expand(len(sequences.ids), -1), sequences.ids], dim=1)


def _prefix_cache(decoder: Any, sequences: Sequences) -> Any:
    """The prefix's keys and values, one row seen by all; None without a prefix, or where a model keeps other state."""
    layers = set(getattr(decoder.config, "layer_types", None) or ["full_attention"])
    if not len(sequences.prefix) or layers != {"full_attention"}:
        return None
    from transformers import DynamicCache

    once = decoder(input_ids=sequences.prefix[None], past_key_values=DynamicCache(), use_cache=True).past_key_values
    shared = DynamicCache()
    rows = len(sequences.ids)
    for number, layer in enumerate(once.layers):
        shared.update(layer.keys.expand(rows, -1, -1, -1), layer.values.expand(rows, -1, -1, -1), number)
    return shared


def sampled_logprobs(logits: Tensor, targets: Tensor) -> Tensor:
    """The log-probability of each target under its row of ``logits``: (tokens,)."""
    return torch.log_softmax(logits, dim=-1).gather(-1, targets[:, None]).squeeze(-1)


def update(
    model: nn.Module,
    reference: nn.Module | None,
    optimizer: torch.optim.Optimizer,
    batch: Batch,
    rl: Rl,
    entropy_weight: float | None = None,
    check: Callable[[float], None] | None = None,
) -> Update:
    """Make one optimizer step on ``batch``; its gradients are accumulated over micro-batches.

    A batch without a signal changes nothing: AdamW's momentum would move the weights without one. ``entropy_weight``
    stands for the recipe's; ``check`` gets the largest difference between sampler and trainer before the step is made,
    and may raise.
    """
    weight = rl.entropy if entropy_weight is None else entropy_weight
    device = next(model.parameters()).device
    optimizer.zero_grad(set_to_none=True)
    loss_sum = entropy_sum = kl_sum = log_ratio = 0.0
    clipped = trained = 0
    for part in batch.micro_batches(rl.micro_batch_tokens, device):
        logits = sampled_logits(model, part)
        new = sampled_logprobs(logits, part.targets)
        clips = {"clip_low": rl.clip_low, "clip_high": rl.clip_high}
        loss = losses.policy_loss(rl.loss, new, part.logprobs, part.advantages, batch.tokens, **clips)
        with torch.set_grad_enabled(bool(weight or rl.form)):
            entropies = losses.entropy(logits)
        if weight:  # tokens at or below the threshold have no bonus
            loss = loss - weight * entropies[entropies > rl.entropy_threshold].sum() / batch.tokens
        if rl.form:
            loss = loss + rl.form * entropies[entropies <= rl.entropy_threshold].sum() / batch.tokens
        if rl.kl and reference is not None:
            with torch.no_grad():
                before = sampled_logprobs(sampled_logits(reference, part), part.targets)
            divergence = losses.kl_to_reference(new, before).sum() / batch.tokens
            loss, kl_sum = loss + rl.kl * divergence, kl_sum + divergence.item()
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            difference = new - part.logprobs
            log_ratio = max(log_ratio, difference.abs().max().item())
            outside = (difference > math.log1p(rl.clip_high)) | (difference < math.log1p(-rl.clip_low))
            clipped += int(outside.sum())
            loss_sum += loss.item()
            entropy_sum += entropies.sum().item()
            trained += len(new)
    gradient = 0.0
    if trained:
        if check is not None:
            check(log_ratio)
        gradient = float(nn.utils.clip_grad_norm_(model.parameters(), rl.max_grad_norm))
        if not math.isfinite(gradient):
            raise FloatingPointError(f"the gradient is {gradient}; the weights are left as they were")
        if gradient:  # else momentum alone would move the weights
            optimizer.step()
    mean = 1 / max(trained, 1)
    return Update(loss_sum, entropy_sum * mean, log_ratio, gradient, clipped * mean, kl_sum, trained)


def learning_rate(rl: Rl, step: int) -> float:
    """The learning rate of ``step``, from 0."""
    if step < rl.warm_up_steps:
        return rl.learning_rate * (step + 1) / rl.warm_up_steps
    if rl.schedule == "constant":
        return rl.learning_rate
    done = min(1.0, (step - rl.warm_up_steps) / max(rl.steps - rl.warm_up_steps, 1))
    left = 1 - done if rl.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done))
    return rl.learning_rate * (rl.final_rate + (1 - rl.final_rate) * left)


def entropy_weight(rl: Rl, step: int, entropy: float) -> float:
    """The weight of the entropy bonus in ``step`` (from 0) for a batch of this ``entropy``, in nats per token.

    It answers to the batch alone: what remembers overshoots.
    """
    if rl.entropy_target is None:
        return rl.entropy
    first, last = rl.entropy_target
    wanted = first + (last - first) * min(1.0, step / max(rl.steps - 1, 1))
    return rl.entropy * min(1.0, max(0.0, 2 * (1 - entropy / wanted)))


@torch.no_grad()
def average(averaged: nn.Module, model: nn.Module, decay: float) -> None:
    """Move ``averaged`` towards ``model``: averaged = decay * averaged + (1 - decay) * model, in place.

    Only what is trained in ``model`` moves; ``averaged`` shares the rest, or has it alike.
    """
    pairs = zip(averaged.parameters(), model.parameters(), strict=True)
    own, new = zip(*[(old, value) for old, value in pairs if value.requires_grad], strict=True)
    torch._foreach_lerp_(list(own), list(new), 1 - decay)


def minibatches(batch: Batch, count: int, order: Sequence[int]) -> list[Batch]:
    """``batch`` cut into ``count`` minibatches, its rollouts taken in ``order``; the normaliser is cut alike."""
    if count == 1:
        return [batch]
    chosen = [batch.rollouts[place] for place in order]
    return [Batch(chosen[start::count], max(1, batch.tokens // count)) for start in range(count)]
