"""The losses, one line each beside its paper. Every tensor here has one entry per sampled token, of the whole batch.

``new`` and ``old`` are log-probabilities of the sampled tokens, (tokens,), under the policy being trained and under the
one that sampled them, both at the temperature they were sampled at; ``advantage`` is that of each token's turn. The
ratio is r = exp(new - old). Losses are sums divided by ``count``, the number of sampled tokens of the batch: every
token weighs the same, whichever rollout it stands in (DAPO, arXiv 2503.14476, eq. 8; GRPO itself divides by each
rollout's length, which favours long failures: Dr. GRPO, arXiv 2503.20783, section 3).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Loss = Literal["grpo", "cispo", "reinforce"]


def grpo(new: Tensor, old: Tensor, advantage: Tensor, *, clip_low: float, clip_high: float) -> Tensor:
    """The clipped ratio, per token: -min(r A, clip(r, 1 - clip_low, 1 + clip_high) A).

    PPO (arXiv 1707.06347, eq. 7) with the advantages of GRPO (arXiv 2402.03300, eq. 3); the upper bound may be wider
    than the lower one (DAPO, arXiv 2503.14476, eq. 10).
    """
    ratio = torch.exp(new - old)
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip_low, 1 + clip_high) * advantage)


def cispo(new: Tensor, old: Tensor, advantage: Tensor, *, clip_high: float) -> Tensor:
    """The clipped importance weight, per token: -sg(min(r, 1 + clip_high)) A new.

    MiniMax-M1 (arXiv 2506.13585, eqs. 4 and 5), without a lower bound, as there: the weight is clipped and carries no
    gradient, so that no token's gradient is lost.
    """
    weight = torch.exp(new - old).clamp(max=1 + clip_high).detach()
    return -weight * advantage * new


def reinforce(new: Tensor, advantage: Tensor) -> Tensor:
    """The plain policy gradient, per token: -A new (Williams 1992). Right only for tokens of the current policy."""
    return -advantage * new


def kl_to_reference(new: Tensor, reference: Tensor) -> Tensor:
    """An estimate of KL(policy || reference) per token that is never negative: exp(d) - d - 1 with d = reference - new.

    GRPO (arXiv 2402.03300, eq. 4).
    """
    difference = reference - new
    return torch.exp(difference) - difference - 1


def entropy(logits: Tensor) -> Tensor:
    """The entropy of each row of ``logits``, (tokens, vocabulary), in nats: (tokens,)."""
    logprobs = torch.log_softmax(logits, dim=-1)
    return -(logprobs.exp() * logprobs).sum(-1)


def policy_loss(
    kind: Loss, new: Tensor, old: Tensor, advantage: Tensor, count: int, *, clip_low: float, clip_high: float
) -> Tensor:
    """The loss ``kind`` of these tokens, a scalar: their sum over ``count``, the sampled tokens of the whole batch."""
    if kind == "grpo":
        per_token = grpo(new, old, advantage, clip_low=clip_low, clip_high=clip_high)
    elif kind == "cispo":
        per_token = cispo(new, old, advantage, clip_high=clip_high)
    else:
        per_token = reinforce(new, advantage)
    return per_token.sum() / count
