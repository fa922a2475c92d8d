"""Each loss against values worked out by hand, and its gradient against finite differences."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from mcpgym_rl.training import losses

CLIPS = {"clip_low": 0.2, "clip_high": 0.28}


def log(*values: float) -> Tensor:
    return torch.tensor([math.log(value) for value in values], dtype=torch.float64)


def test_the_clipped_ratio_by_hand() -> None:
    # ratios 1, 2, 2, 0.5, 0.5 with advantages 1, 1, -1, 1, -1
    new, old = log(0.5, 0.4, 0.4, 0.1, 0.1), log(0.5, 0.2, 0.2, 0.2, 0.2)
    advantage = torch.tensor([1.0, 1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    # min(1, 1), min(2, 1.28), min(-2, -1.28), min(.5, .8), min(-.5, -.8), negated
    expected = torch.tensor([-1.0, -1.28, 2.0, -0.5, 0.8], dtype=torch.float64)
    assert torch.allclose(losses.grpo(new, old, advantage, **CLIPS), expected)


def test_the_clipped_ratio_has_no_gradient_beyond_its_bounds_on_the_side_it_would_gain() -> None:
    new = log(0.4, 0.4, 0.1, 0.1).requires_grad_()
    advantage = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    losses.grpo(new, log(0.2, 0.2, 0.2, 0.2), advantage, **CLIPS).sum().backward()
    assert new.grad is not None
    assert new.grad.tolist() == pytest.approx([0.0, 2.0, -0.5, 0.0])


def test_cispo_by_hand_its_weight_is_clipped_and_every_token_keeps_a_gradient() -> None:
    new = log(0.5, 0.4, 0.1).requires_grad_()
    advantage = torch.tensor([1.0, 1.0, -2.0], dtype=torch.float64)
    loss = losses.cispo(new, log(0.5, 0.2, 0.2), advantage, clip_high=0.28)
    # weights 1, min(2, 1.28), 0.5
    expected = [-math.log(0.5), -1.28 * math.log(0.4), 0.5 * 2 * math.log(0.1)]
    assert loss.tolist() == pytest.approx(expected)
    loss.sum().backward()
    assert new.grad is not None
    assert new.grad.tolist() == pytest.approx([-1.0, -1.28, 1.0])


def test_the_kl_estimate_by_hand_is_never_negative_and_zero_where_they_agree() -> None:
    estimate = losses.kl_to_reference(log(0.2, 0.5, 0.5), log(0.4, 0.25, 0.5))
    assert estimate.tolist() == pytest.approx([2 - math.log(2) - 1, 0.5 + math.log(2) - 1, 0.0])
    assert (estimate >= 0).all()


def test_the_entropy_of_a_uniform_and_of_a_certain_choice() -> None:
    logits = torch.tensor([[0.0, 0.0, 0.0, 0.0], [50.0, -50.0, -50.0, -50.0]], dtype=torch.float64)
    assert losses.entropy(logits).tolist() == pytest.approx([math.log(4), 0.0], abs=1e-9)


def test_the_normaliser_is_the_whole_batch_so_that_long_rollouts_weigh_by_their_tokens() -> None:
    new = log(0.5, 0.5, 0.5)
    whole = losses.policy_loss("reinforce", new, new, torch.tensor([1.0, 2.0, -1.0]).double(), 10, **CLIPS)
    assert whole.item() == pytest.approx(-2 * math.log(0.5) / 10)


@pytest.mark.parametrize("kind", ["grpo", "cispo", "reinforce"])
def test_gradients_agree_with_finite_differences(kind: losses.Loss) -> None:
    generator = torch.Generator().manual_seed(7)
    logits = torch.randn(6, 5, generator=generator, dtype=torch.float64)
    targets = torch.randint(5, (6,), generator=generator)
    old = torch.log_softmax(logits + 0.3 * torch.randn(6, 5, generator=generator).double(), -1)
    old = old.gather(-1, targets[:, None]).squeeze(-1)
    advantage = torch.randn(6, generator=generator).double()
    fixed = torch.exp(torch.log_softmax(logits, -1).gather(-1, targets[:, None]).squeeze(-1) - old)

    def loss(values: Tensor, *, weight_held: bool) -> Tensor:
        new = torch.log_softmax(values, -1).gather(-1, targets[:, None]).squeeze(-1)
        if weight_held and kind == "cispo":  # the weight carries no gradient: a finite difference must hold it still
            return (-fixed.clamp(max=1.28) * advantage * new).sum() / 6
        return losses.policy_loss(kind, new, old, advantage, 6, **CLIPS)

    inputs = logits.clone().requires_grad_()
    loss(inputs, weight_held=False).backward()
    assert inputs.grad is not None
    step = 1e-6
    for row in range(6):
        for column in range(5):
            up, down = logits.clone(), logits.clone()
            up[row, column] += step
            down[row, column] -= step
            slope = (loss(up, weight_held=True) - loss(down, weight_held=True)) / (2 * step)
            assert inputs.grad[row, column].item() == pytest.approx(slope.item(), abs=1e-7)


@pytest.mark.parametrize("kind", ["grpo", "cispo", "reinforce"])
def test_on_the_very_policy_that_sampled_all_losses_have_the_same_gradient(kind: losses.Loss) -> None:
    logits = torch.randn(4, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    advantage = torch.tensor([0.5, -1.0, 0.0, 2.0], dtype=torch.float64)
    gradients = []
    for name in (kind, "reinforce"):
        inputs = logits.clone().requires_grad_()
        new = torch.log_softmax(inputs, -1)[:, 0]
        losses.policy_loss(name, new, new.detach(), advantage, 4, **CLIPS).backward()  # type: ignore[arg-type]
        gradients.append(inputs.grad)
    assert torch.allclose(gradients[0], gradients[1])  # type: ignore[arg-type]
