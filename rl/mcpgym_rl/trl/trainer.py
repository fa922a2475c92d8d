"""``GRPOTrainer`` with our rollouts: what TRL leaves open (the learning rate's course) and what we want proved.

Proved before each part of a batch is learnt from: its ids and masks are, bit for bit, those of rollouts of this very
batch. And before the batch's first update: sampler and trainer agree on the log-probability of every sampled token.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase, PrinterCallback, ProgressCallback, TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from mcpgym_rl.run import EpisodeSpec
from mcpgym_rl.training.guards import TrainingStopped
from mcpgym_rl.training.updating import learning_rate
from mcpgym_rl.trl.plan import data_set
from mcpgym_rl.trl.rollouts import Rollouts, Row, environment
from mcpgym_rl.trl.settings import Sizes


class Trainer(GRPOTrainer):
    """TRL's trainer over our rollouts.

    Args:
        model: what is trained.
        tokenizer: of the model's directory; only its special tokens are used.
        config: TRL's.
        sizes: how a batch is cut up.
        rollouts: what plays.
        specs: the first episode of every group of the run.
    """

    lr_scheduler: torch.optim.lr_scheduler.LRScheduler | None

    def __init__(
        self,
        model: Any,
        tokenizer: PreTrainedTokenizerBase,
        config: GRPOConfig,
        sizes: Sizes,
        rollouts: Rollouts,
        specs: list[EpisodeSpec],
    ) -> None:
        self.rollouts, self.sizes = rollouts, sizes
        self.log_ratio = 0.0
        self._logprobs: Tensor | None = None
        super().__init__(
            model=model,
            reward_funcs=environment,
            args=config,
            train_dataset=data_set(specs),
            processing_class=tokenizer,
            rollout_func=rollouts,
        )
        logging.getLogger(GRPOTrainer.__module__).addFilter(no_unscored_rollout)
        for silent in (PrinterCallback, ProgressCallback):
            self.remove_callback(silent)
        self.add_callback(StillWithoutGradient())

    def create_scheduler(
        self, num_training_steps: int, optimizer: torch.optim.Optimizer | None = None
    ) -> torch.optim.lr_scheduler.LRScheduler:
        """The recipe's own course of the learning rate, which is that of our trainer."""
        if self.lr_scheduler is None:
            rl = self.rollouts.rl

            def share(step: int) -> float:
                return learning_rate(rl, step // rl.updates) / rl.learning_rate

            steered = optimizer or self.optimizer
            assert steered is not None
            self.lr_scheduler = torch.optim.lr_scheduler.LambdaLR(steered, share)
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def _get_per_token_logps_and_entropies(
        self, *args: Any, **rest: Any
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        made: tuple[Tensor, Tensor | None, Tensor | None] = super()._get_per_token_logps_and_entropies(*args, **rest)
        self._logprobs = made[0].detach()
        return made

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """A batch. A group whose rewards are equal has advantages of exactly 0, where TRL's mean may leave a rest."""
        made: dict[str, Any] = super()._generate_and_score_completions(inputs)
        made["advantages"][torch.tensor(self.rollouts.batch.flat, device=made["advantages"].device)] = 0.0
        return made

    def _compute_loss(self, model: Any, inputs: Mapping[str, Tensor]) -> Tensor:
        for row in rows_of(inputs):
            if row not in self.rollouts.batch.rows:
                raise AssertionError("TRL was about to train on ids that were not sampled in this batch")
        loss: Tensor = super()._compute_loss(model, inputs)
        at = self._step % (self.sizes.accumulated * self.sizes.updates)
        if at == 0:
            self.log_ratio = 0.0
        if at < self.sizes.accumulated:  # before the batch's first update
            self._agree(inputs)
        return loss

    def _agree(self, inputs: Mapping[str, Tensor]) -> None:
        """Compare the log-probabilities that were sampled with with those that are trained with.

        Raises:
            TrainingStopped: they differ.
        """
        assert self._logprobs is not None
        mask = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        apart = (self._logprobs.float() - inputs["sampling_per_token_logps"]).abs()[mask]
        self.log_ratio = max(self.log_ratio, float(apart.max()) if len(apart) else 0.0)
        limit = self.rollouts.rl.guards.max_log_ratio
        if not self.use_vllm and not self.log_ratio <= limit:
            raise TrainingStopped(
                f"sampler and trainer differ by {self.log_ratio:.3g} in a token's log-probability (at most {limit:g} "
                "is allowed): what was sampled is not what would be trained. With bf16 or fp16 they differ by nature: "
                "allow more (rl.guards.max_log_ratio)"
            )


class StillWithoutGradient(TrainerCallback):
    """Where a batch has no gradient at all, the weights stay: AdamW's momentum would move them without one."""

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
        """Take the gradients away if all of them are 0: the optimizer passes over what has none."""
        given = [value for value in model.parameters() if value.grad is not None]
        if not any(bool(value.grad.any()) for value in given):
            for value in given:
                value.grad = None


def no_unscored_rollout(record: logging.LogRecord) -> bool:
    """TRL prints, whole, a rollout of each batch that has one without a score. The row of metrics counts them."""
    return "All reward functions returned None" not in str(record.msg)


def rows_of(inputs: Mapping[str, Tensor]) -> list[Row]:
    """The rollouts in a part of a batch, as TRL will train on them, without its padding."""
    prompts, follows = (
        _unpadded(inputs, "prompt_ids", "prompt_mask"),
        _unpadded(inputs, "completion_ids", "completion_mask"),
    )
    masks = _unpadded(inputs, "tool_mask", "completion_mask")
    return list(zip(prompts, follows, masks, strict=True))


def _unpadded(inputs: Mapping[str, Tensor], name: str, mask: str) -> list[tuple[int, ...]]:
    return [tuple(row[kept.bool()].tolist()) for row, kept in zip(inputs[name], inputs[mask], strict=True)]


def last_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint of TRL's in ``folder``: the state is what it writes last."""
    found = [path for path in folder.glob("checkpoint-*") if (path / "trainer_state.json").is_file()]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)
