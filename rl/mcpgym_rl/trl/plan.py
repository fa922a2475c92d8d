"""Which episodes TRL has played: those that our own trainer would play, written into the prompts of its data set.

TRL hands a rollout function nothing but prompts. So a prompt is not the text that the policy reads (the episode makes
that) but which episode it is, as one line of JSON; and TRL's sampler repeats it once for each rollout of the group.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpgym_rl.run import EpisodeSpec
from mcpgym_rl.training.curriculum import Lines, plan_batch
from mcpgym_rl.training.recipe import Recipe
from mcpgym_rl.training.sections import Rl

if TYPE_CHECKING:
    from datasets import Dataset  # type: ignore[import-untyped]


def planned(recipe: Recipe, rl: Rl, name: str, size: int) -> list[EpisodeSpec]:
    """The first episode of every group of every batch, in the order they are played.

    Args:
        recipe: whose seed and configuration hold.
        rl: the stage.
        name: of the environment.
        size: how many tasks the stage's split has.
    """
    firsts: list[EpisodeSpec] = []
    for step in range(rl.steps):
        firsts += plan_batch(rl, name, recipe.config, size, recipe.seed, step, Lines()).specs[:: rl.group_size]
    return firsts


def data_set(specs: list[EpisodeSpec]) -> Dataset:
    """The prompts of a training run, one a group."""
    from datasets import Dataset

    return Dataset.from_dict({"prompt": [write(spec, group) for group, spec in enumerate(specs)]})


def write(spec: EpisodeSpec, group: int) -> str:
    """An episode as a prompt."""
    return json.dumps({"split": spec.split, "index": spec.index, "seed": spec.seed, "group": group})


def read(prompt: str) -> dict[str, Any]:
    """What a prompt says: ``split``, ``index``, ``seed``, and the ``group``, which is the run's nth."""
    made: dict[str, Any] = json.loads(prompt)
    return made
