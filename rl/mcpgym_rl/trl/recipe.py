"""A recipe for TRL: the same as our own trainer's, without what TRL cannot do, and with a table of TRL's own settings.

What a recipe does not say gets the value that TRL can do; what it says and TRL cannot do is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from mcpgym.errors import ConfigurationError
from mcpgym_rl.training.recipe import Recipe, checked, find_recipe_data
from mcpgym_rl.training.sections import Curriculum, Guards, Rl

ENGINE = "trl"
"""The name of the table, and of the engine on the command line."""


class TrlRecipe(Recipe):
    """A recipe with a table ``[trl]``."""

    trl: dict[str, Any] = Field(default_factory=dict)
    """Fields of TRL's ``GRPOConfig`` that no field of the recipe stands for: ``per_device_train_batch_size``, ``bf16``,
    ``use_vllm``, ``vllm_mode``, ``deepspeed``, ``report_to``, …"""


_ONE = 'TRL knows one advantage a rollout, its reward less the mean of its group\'s: say advantage = "rollout"'
_TREE = "TRL plays the tasks it was given beforehand"
_BACK = "TRL has no best state to go back to"
CANNOT: Mapping[str, tuple[Any, str]] = {
    "cpu_seconds": (None, "TRL counts steps, not seconds: say steps"),
    "signal_groups": (0.0, "TRL's batches are all of one size: say groups"),
    "max_groups": (Rl().max_groups, "TRL's batches are all of one size: say groups"),
    "advantage": ("rollout", _ONE),
    "prior": (Rl().prior, _ONE),
    "least_others": (0, _ONE),
    "hot_min_p": (Rl().hot_min_p, f"{_TREE}, all turns at one temperature"),
    "entropy_target": (None, "TRL's bonus has one weight, or follows another law ([trl] use_adaptive_entropy)"),
    "form": (0.0, "TRL has no penalty on tokens of little entropy"),
    "entropy_threshold": (0.0, "TRL's bonus reaches every sampled token, or a share ([trl] top_entropy_quantile)"),
    "average": (0.0, "TRL keeps no average of the weights: say average = 0"),
    "train_without_signal": (True, "TRL trains on every sampled token, also those without an advantage"),
    "overlap": (False, "TRL samples a batch, then learns from it; its vLLM server is its way to use other machines"),
    "micro_batch_tokens": (
        Rl().micro_batch_tokens,
        "TRL counts rollouts: say [trl] per_device_train_batch_size",
    ),
    "vllm": (None, "TRL has its own: say [trl] use_vllm"),
    "curriculum": (Curriculum(), f"{_TREE}: leave the table out"),
    "further": (False, "TRL knows no certificates: every stage comes after the one before"),
    "certify": (None, "TRL knows no certificates: say certify = false, and use mcpgym certify afterwards"),
}  # fmt: skip
"""Fields of ``[rl]`` that TRL cannot do: the one value that it does all the same, and why there is no other."""
CANNOT_GUARD: Mapping[str, str] = {"max_invalid_share": _BACK, "max_roll_backs": _BACK}


def find_trl_recipe(what: str, changes: Mapping[str, Any] | None = None) -> TrlRecipe:
    """The recipe that ``what`` means (see :func:`mcpgym_rl.training.recipe.find_recipe`), fitted to TRL.

    Raises:
        ConfigurationError: there is none, it is wrong, or it says what TRL cannot do.
    """
    data, source = find_recipe_data(what, changes)
    return make_trl_recipe(data, source)


def make_trl_recipe(data: Mapping[str, Any], source: str = "recipe") -> TrlRecipe:
    """The recipe that ``data`` is, fitted to TRL.

    Raises:
        ConfigurationError: as above.
    """
    return fitted(checked(TrlRecipe, data, source), source)


def fitted(recipe: TrlRecipe, source: str = "the recipe") -> TrlRecipe:
    """``recipe`` as TRL will run it: what it does not say has the value that TRL can do. Fitted again, it is the same.

    Raises:
        ConfigurationError: it says what TRL cannot do; the message names every such field, and why.
    """
    problems: list[str] = []
    if recipe.model.device not in ("cpu", "cuda"):
        problems.append(
            f"model.device: accelerate gives each process its GPU, so say cuda (and which with CUDA_VISIBLE_DEVICES), "
            f"not {recipe.model.device!r}"
        )
    first = None if recipe.rl is None else _stage(recipe.rl, "rl", recipe.trl, problems)
    then = tuple(_stage(rl, f"then[{place}]", recipe.trl, problems) for place, rl in enumerate(recipe.then))
    if problems:
        raise ConfigurationError(f"{source} says what TRL cannot do: {'; '.join(problems)}")
    return recipe.model_copy(update={"rl": first, "then": then})


def _stage(rl: Rl, where: str, own: Mapping[str, Any], problems: list[str]) -> Rl:
    changes: dict[str, Any] = {}
    for name, (possible, why) in CANNOT.items():
        if name not in rl.model_fields_set:
            changes[name] = possible
        elif getattr(rl, name) != possible:
            problems.append(f"{where}.{name}: {why}")
    for name, why in CANNOT_GUARD.items():
        if getattr(rl.guards, name) != getattr(Guards(), name):
            problems.append(f"{where}.guards.{name}: {why}")
    if own.get("use_vllm") and rl.guards.max_log_ratio != Guards().max_log_ratio:
        problems.append(
            f"{where}.guards.max_log_ratio: vLLM's log-probabilities differ more than that by nature; TRL weighs what "
            "it samples accordingly ([trl] vllm_importance_sampling_mode)"
        )
    if rl.loss == "reinforce" and rl.updates > 1:
        problems.append(
            f"{where}.loss: TRL has no plain policy gradient; in one update a batch its CISPO is the same, so say "
            "updates = 1, or cispo"
        )
    if (kind := own.get("loss_type")) is not None and rl.loss != "grpo":
        problems.append(f'trl.loss_type: {kind!r} stands in for {where}.loss = "grpo" alone, not for {rl.loss!r}')
    return rl.model_copy(update=changes)
