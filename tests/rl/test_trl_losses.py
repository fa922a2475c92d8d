"""Same model, same batch: our loss and TRL's agree, in value and in every gradient, for each loss that both have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from mcpgym import load_environment
from mcpgym.control import LocalControl
from mcpgym.episodes import Episodes
from mcpgym_rl.lanes import ControlLane
from mcpgym_rl.local.policy import shipped_models
from mcpgym_rl.training import losses
from mcpgym_rl.training.advantages import group_advantages
from mcpgym_rl.training.batch import make_batch
from mcpgym_rl.training.models import copy_model, load_model
from mcpgym_rl.training.updating import sampled_logits, sampled_logprobs
from mcpgym_rl.trl.plan import planned, write
from mcpgym_rl.trl.recipe import make_trl_recipe
from mcpgym_rl.trl.settings import grpo_config

trl = pytest.importorskip("trl")
pytestmark = pytest.mark.slow
NAME = "tic-tac-toe"
WORTH = {"win": 1.0, "draw": 0.3, "loss": -0.7, "unfinished": -0.7}
RL = {"steps": 1, "groups": 3, "group_size": 4, "temperature": 1.9, "clip_high": 0.05, "clip_low": 0.04}


class Batch:
    """One batch of games of the packaged model, sampled as TRL has it sampled, and the model it is learnt by: another
    one, so that ratios are not 1 and some are clipped."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        from mcpgym_rl.trl.rollouts import Rollouts
        from mcpgym_rl.trl.trainer import Trainer

        torch.set_num_threads(1)
        self.environment = load_environment(NAME)
        path = shipped_models(self.environment)["default"]
        rl = {**RL, "rewards": {"game_outcome": WORTH}, "kl": 0.1}
        self.recipe = make_trl_recipe({"environment": NAME, "rl": rl, "trl": {"per_device_train_batch_size": 12}})
        assert self.recipe.rl is not None
        self.rl = self.recipe.rl
        self.model, chat = load_model(path, self.recipe.model)
        config, sizes = grpo_config(self.recipe, self.rl, folder, chat.end_ids)
        lane = ControlLane(LocalControl(Episodes({NAME: self.environment})))
        self.rollouts = Rollouts(self.recipe, self.rl, self.environment, chat, lane)
        specs = planned(self.recipe, self.rl, NAME, self.environment.size(self.rl.split))
        tokenizer = AutoTokenizer.from_pretrained(str(path))
        self.trainer: Any = Trainer(self.model, tokenizer, config, sizes, self.rollouts, specs)
        self.trainer.current_gradient_accumulation_steps = 1
        self.reference = copy_model(self.model)
        prompts = [{"prompt": write(spec, group)} for group, spec in enumerate(specs) for _ in range(4)]
        self.model.train()
        self.inputs: dict[str, Tensor] = self.trainer._generate_and_score_completions(prompts)
        groups = [group for group in range(3) for _ in range(4)]
        advantages = group_advantages(self.rollouts.batch.rewards, groups)
        self.advantages = torch.tensor([value or 0.0 for value in advantages])
        traces = self.rollouts.batch.traces
        self.ours = make_batch(traces, advantages, temperature=self.rl.temperature, keep_without_signal=True)
        with torch.no_grad():
            noise = torch.Generator().manual_seed(1)
            for value in self.model.parameters():
                value += 0.06 * value.std() * torch.randn(value.shape, generator=noise)

    def gradients(self, loss: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad(loss, list(self.model.parameters())))

    def theirs(self, kind: str, **settings: Any) -> Tensor:
        """TRL's loss of the batch, the log-probabilities it was sampled with being the old ones."""
        beta, entropy = settings.pop("beta", 0.0), settings.pop("entropy_coef", 0.0)
        self.trainer.loss_type, self.trainer.beta = kind, beta
        self.trainer.entropy_coef, self.trainer._entropy_bonus_enabled = entropy, entropy != 0
        self.trainer.epsilon_high = 1 + self.rl.clip_high if kind == "cispo" else self.rl.clip_high
        given = {**self.inputs, "old_per_token_logps": self.inputs["sampling_per_token_logps"]}
        made: Tensor = trl.GRPOTrainer._compute_loss(self.trainer, self.model, given)
        return made

    def parts(self) -> Iterator[tuple[Any, Tensor, Tensor]]:
        for part in self.ours.micro_batches(2_000):
            logits = sampled_logits(self.model, part)
            yield part, logits, sampled_logprobs(logits, part.targets)


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Batch]:
    made = Batch(tmp_path_factory.mktemp("losses"))
    yield made
    made.rollouts.close()


def agree(batch: Batch, ours: Tensor, theirs: Tensor) -> None:
    assert abs(ours.item() - theirs.item()) < 1e-5
    for one, other in zip(batch.gradients(ours), batch.gradients(theirs), strict=True):
        assert float((one - other).abs().max()) < 1e-5


def test_the_batch_is_worth_comparing_advantages_and_masks_are_ours(batch: Batch) -> None:
    assert torch.allclose(batch.inputs["advantages"], batch.advantages, atol=1e-6)
    assert len(set(batch.advantages.tolist())) > 2
    mask = batch.inputs["tool_mask"] * batch.inputs["completion_mask"]
    assert int(mask.sum()) == batch.ours.tokens > 100
    assert int(batch.inputs["completion_mask"].sum()) > batch.ours.tokens, "the environment spoke too"
    ratios = torch.cat([(new - part.logprobs).exp().detach() for part, _, new in batch.parts()])
    advantages = torch.cat([part.advantages for part, _, _ in batch.parts()])
    assert int(((ratios > 1 + batch.rl.clip_high) & (advantages > 0)).sum()) > 3, "clipped from above"
    assert int(((ratios < 1 - batch.rl.clip_low) & (advantages < 0)).sum()) > 3, "clipped from below"


@pytest.mark.parametrize(("kind", "theirs"), [("grpo", "dapo"), ("grpo", "bnpo"), ("cispo", "cispo")])
def test_our_losses_are_trls(kind: Any, theirs: str, batch: Batch) -> None:
    clips = {"clip_low": batch.rl.clip_low, "clip_high": batch.rl.clip_high}
    ours = sum(
        (
            losses.policy_loss(kind, new, part.logprobs, part.advantages, batch.ours.tokens, **clips)
            for part, _, new in batch.parts()
        ),
        torch.zeros(()),
    )
    agree(batch, ours, batch.theirs(theirs))


def test_reinforce_is_trls_cispo_where_the_policy_is_the_one_that_sampled(batch: Batch) -> None:
    count = batch.ours.tokens
    terms = ((losses.reinforce(new, part.advantages).sum() / count) for part, _, new in batch.parts())
    batch.trainer.loss_type = "cispo"
    batch.trainer.epsilon_high = 1 + batch.rl.clip_high
    batch.trainer.beta, batch.trainer._entropy_bonus_enabled = 0.0, False
    theirs = trl.GRPOTrainer._compute_loss(batch.trainer, batch.model, batch.inputs)  # one update: no old ones
    agree(batch, sum(terms, torch.zeros(())), theirs)


@pytest.mark.parametrize("kind", ["grpo", "dr_grpo"])
def test_the_other_normalisers_of_trl_weigh_our_terms(kind: str, batch: Batch) -> None:
    """GRPO's mean over each rollout, and Dr. GRPO's constant: ours has neither, but the terms are the same."""
    mask = batch.inputs["tool_mask"] * batch.inputs["completion_mask"]
    logprobs, _, _ = batch.trainer._get_per_token_logps_and_entropies(
        batch.model,
        torch.cat([batch.inputs["prompt_ids"], batch.inputs["completion_ids"]], 1),
        torch.cat([batch.inputs["prompt_mask"], batch.inputs["completion_mask"]], 1),
        mask.shape[1],
    )
    old, advantage = batch.inputs["sampling_per_token_logps"], batch.inputs["advantages"][:, None].expand_as(logprobs)
    terms = mask * losses.grpo(logprobs, old, advantage, clip_low=batch.rl.clip_low, clip_high=batch.rl.clip_high)
    length = batch.trainer.max_completion_length
    ours = (terms.sum(1) / mask.sum(1)).mean() if kind == "grpo" else terms.sum() / (len(mask) * length)
    agree(batch, ours, batch.theirs(kind))


def test_the_divergence_and_the_entropy_bonus_are_the_same(batch: Batch) -> None:
    clips = {"clip_low": batch.rl.clip_low, "clip_high": batch.rl.clip_high}
    ours, count = torch.zeros(()), batch.ours.tokens
    for part, logits, new in batch.parts():
        with torch.no_grad():
            before = sampled_logprobs(sampled_logits(batch.reference, part), part.targets)
        ours = ours + losses.policy_loss("grpo", new, part.logprobs, part.advantages, count, **clips)
        ours = ours + 0.1 * losses.kl_to_reference(new, before).sum() / count
        ours = ours - 0.02 * losses.entropy(logits).sum() / count
    agree(batch, ours, batch.theirs("dapo", beta=0.1, entropy_coef=0.02))
