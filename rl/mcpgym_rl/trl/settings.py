"""From a recipe to TRL's ``GRPOConfig``: which field becomes which, and what of ``[trl]`` is taken over."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_rl.trl.recipe import TrlRecipe

if TYPE_CHECKING:
    from trl.trainer.grpo_config import GRPOConfig

    from mcpgym_rl.training.sections import Rl

ROLLOUTS_AT_ONCE = 16
"""How many rollouts' gradients one process computes at once at most, where ``[trl]`` does not say."""
INSTEAD: Mapping[str, str] = {
    "output_dir": "--out says where",
    "seed": "say seed",
    "data_seed": "say seed",
    "max_steps": "say rl.steps",
    "num_train_epochs": "say rl.steps",
    "num_generations": "say rl.group_size",
    "generation_batch_size": "say rl.groups and rl.group_size",
    "steps_per_generation": "say rl.updates, and trl.per_device_train_batch_size",
    "gradient_accumulation_steps": "say rl.updates, and trl.per_device_train_batch_size",
    "num_iterations": "a batch is learnt from once; say rl.updates for several updates from its parts",
    "learning_rate": "say rl.learning_rate",
    "lr_scheduler_type": "say rl.schedule",
    "lr_scheduler_kwargs": "say rl.final_rate",
    "warmup_steps": "say rl.warm_up_steps",
    "warmup_ratio": "say rl.warm_up_steps",
    "weight_decay": "say rl.weight_decay",
    "adam_beta1": "say rl.betas",
    "adam_beta2": "say rl.betas",
    "max_grad_norm": "say rl.max_grad_norm",
    "temperature": "say rl.temperature",
    "epsilon": "say rl.clip_low",
    "epsilon_high": "say rl.clip_high",
    "beta": "say rl.kl",
    "use_bias_correction_kl": "rl.kl is the weight of the estimate without that factor",
    "entropy_coef": "say rl.entropy",
    "scale_rewards": "say rl.scale",
    "reward_weights": "say rl.rewards.components",
    "save_steps": "say rl.checkpoint_every",
    "save_strategy": "say rl.checkpoint_every",
    "logging_steps": "every batch is written down",
    "logging_strategy": "every batch is written down",
    "logging_first_step": "every batch is written down",
    "save_only_model": "a run that is gone on with needs the optimizer too",
    "resume_from_checkpoint": "--resume goes on with a run",
    "ignore_data_skip": "a run that is gone on with plays the episodes that are left",
    "push_to_hub": "a run's folder has its rollouts and rewards too; push its model/ afterwards",
    "shuffle_dataset": "the recipe's seed says which tasks are played when",
    "use_cpu": "say model.device",
    "remove_unused_columns": "there are none",
    "generation_kwargs": "say rl.max_new_tokens and rl.temperature",
    "top_p": "what is sampled is what is trained: all tokens",
    "top_k": "what is sampled is what is trained: all tokens",
    "min_p": "what is sampled is what is trained: all tokens",
    "repetition_penalty": "what is sampled is what is trained: all tokens",
    "chat_template_kwargs": "the model's template is rendered as everywhere else here",
    "max_tool_calling_iterations": "the environment's own limit on turns holds",
    "use_transformers_continuous_batching": "our own engine samples, or vLLM",
    "use_transformers_paged": "our own engine samples, or vLLM",
    "model_init_kwargs": "say model",
    "eval_strategy": "evaluate the model afterwards (mcpgym eval)",
    "do_eval": "evaluate the model afterwards (mcpgym eval)",
    "disable_tqdm": "the command shows its own progress",
}
"""Fields of ``GRPOConfig`` that ``[trl]`` may not have, and what is to be said instead."""
LOSSES = ("grpo", "bnpo", "dr_grpo", "sapo", "luspo", "vespo")
"""TRL's losses that our trainer has not, which ``[trl] loss_type`` may name."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How one batch is cut up: ``part`` rollouts at once in each of ``processes`` processes, ``accumulated`` parts an
    update, ``updates`` updates a batch."""

    part: int
    accumulated: int
    updates: int
    processes: int

    @property
    def rollouts(self) -> int:
        """All of them."""
        return self.part * self.accumulated * self.updates * self.processes


def sizes(rl: Rl, own: Mapping[str, Any], processes: int) -> Sizes:
    """How the batch of ``rl`` is cut up.

    Raises:
        ConfigurationError: it cannot be cut into equal parts.
    """
    rollouts = rl.groups * rl.group_size
    share, rest = divmod(rollouts, rl.updates * processes)
    if rest:
        raise ConfigurationError(
            f"a batch of {rl.groups} groups of {rl.group_size} cannot be cut into {rl.updates} updates over "
            f"{processes} processes; rl.groups * rl.group_size must be a multiple of both together"
        )
    part = own.get("per_device_train_batch_size")
    if part is None:
        part = next(size for size in range(min(share, ROLLOUTS_AT_ONCE), 0, -1) if share % size == 0)
    if not isinstance(part, int) or isinstance(part, bool) or part < 1 or share % part:
        raise ConfigurationError(
            f"trl.per_device_train_batch_size: each process has {share} rollouts an update, which {part!r} does not "
            "divide"
        )
    return Sizes(part, share // part, rl.updates, processes)


def world() -> tuple[int, int]:
    """This process's number and how many there are, as ``accelerate launch`` and ``torchrun`` say."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def grpo_config(recipe: TrlRecipe, rl: Rl, folder: Path, end_ids: frozenset[int]) -> tuple[GRPOConfig, Sizes]:
    """TRL's configuration for the stage ``rl``, whose checkpoints go into ``folder``, and how its batches are cut up.

    Raises:
        ConfigurationError: a field of ``[trl]`` is unknown, said elsewhere, or refused by TRL.
    """
    from trl.trainer.grpo_config import GRPOConfig

    cut = sizes(rl, recipe.trl, world()[1])
    fixed: dict[str, Any] = {
        "output_dir": str(folder),
        "seed": recipe.seed & 0xFFFF_FFFF,
        "max_steps": rl.steps * rl.updates,
        "num_generations": rl.group_size,
        "gradient_accumulation_steps": cut.accumulated,
        "steps_per_generation": cut.accumulated * cut.updates,
        "learning_rate": rl.learning_rate,
        "lr_scheduler_type": "constant",  # Trainer.create_scheduler has the recipe's own
        "weight_decay": rl.weight_decay,
        "adam_beta1": rl.betas[0],
        "adam_beta2": rl.betas[1],
        "max_grad_norm": rl.max_grad_norm,
        "temperature": rl.temperature,
        "loss_type": _loss_type(rl, recipe.trl),
        "epsilon": rl.clip_low,
        "epsilon_high": rl.clip_high if rl.loss == "grpo" else 1 + rl.clip_high,  # TRL's CISPO takes the bound itself
        "beta": rl.kl,
        "use_bias_correction_kl": False,
        "entropy_coef": rl.entropy,
        "scale_rewards": "group" if rl.scale == "std" else "none",
        "save_strategy": "steps",
        "save_steps": rl.checkpoint_every * rl.updates,
        "logging_strategy": "steps",
        "logging_steps": rl.updates,
        "shuffle_dataset": False,
        "use_cpu": recipe.model.device == "cpu",
        "disable_tqdm": True,
    }
    ours: dict[str, Any] = {
        "per_device_train_batch_size": cut.part,
        "save_total_limit": 2,
        "report_to": "none",
        "bf16": False,
        "gradient_checkpointing": False,
        "dataloader_pin_memory": recipe.model.device != "cpu",
    }
    if recipe.trl.get("use_vllm"):
        fixed["generation_kwargs"] = {"max_tokens": rl.max_new_tokens, "stop_token_ids": sorted(end_ids)}
    given = _given(recipe.trl, GRPOConfig)
    try:
        return GRPOConfig(**{**ours, **given, **fixed}), cut
    except (ValueError, TypeError, ImportError, NotImplementedError) as error:
        raise ConfigurationError(f"TRL refuses the recipe's settings: {error}") from error


def check_settings(recipe: TrlRecipe) -> None:
    """Have TRL look at the configuration of every stage, before any work is done.

    Raises:
        ConfigurationError: as :func:`grpo_config`; or there is no GPU for ``model.device``, or nobody to report to.
    """
    import torch
    from transformers.integrations import get_reporting_integration_callbacks

    if recipe.model.device == "cuda" and not torch.cuda.is_available():
        raise ConfigurationError("model.device: PyTorch finds no GPU here; say cpu, and all is computed there")
    for rl in filter(None, (recipe.rl, *recipe.then)):
        config, _ = grpo_config(recipe, rl, Path("unused"), frozenset({0}))
        try:
            for callback in get_reporting_integration_callbacks(config.report_to):
                callback()  # looks for its package
        except (RuntimeError, ImportError, ValueError) as error:
            raise ConfigurationError(f"trl.report_to: {error}") from None


def _given(own: Mapping[str, Any], config: type[GRPOConfig]) -> dict[str, Any]:
    known = {item.name for item in dataclasses.fields(config) if item.init} - INSTEAD.keys()
    kinds = get_type_hints(config)
    for name, value in own.items():
        if name in INSTEAD:
            raise ConfigurationError(f"trl.{name} is not for [trl]: {INSTEAD[name]}")
        if name not in known:
            raise UnknownNameError("field of TRL's GRPOConfig", name, known, there="the fields of trl.GRPOConfig")
        try:
            TypeAdapter(kinds[name]).validate_python(value, strict=True)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]["msg"]
            raise ConfigurationError(f"trl.{name}: {problem[:1].lower()}{problem[1:]}, not {value!r}") from None
    if own.get("use_vllm") and find_spec("vllm") is None:
        raise ConfigurationError("trl.use_vllm: vLLM is not installed beside TRL: pip install 'trl[vllm]'")
    return dict(own)


def _loss_type(rl: Rl, own: Mapping[str, Any]) -> str:
    """TRL's name of the loss. Ours weigh every token of a batch alike, which TRL calls DAPO."""
    if (kind := own.get("loss_type")) is None:
        return "dapo" if rl.loss == "grpo" else "cispo"
    if kind in ("dapo", "cispo"):
        raise ConfigurationError(
            f"trl.loss_type: {kind!r} is rl.loss = {'grpo' if kind == 'dapo' else kind!r}; say that"
        )
    if kind not in LOSSES:
        raise UnknownNameError("loss of TRL's that is not rl.loss", str(kind), LOSSES)
    return str(kind)
