"""What the tests of TRL train: the guessing game, with a tiny model that its teacher has warmed up."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from mcpgym_rl.trl.recipe import TrlRecipe, make_trl_recipe

GUESS: dict[str, Any] = {
    "environment": "guessing_game:Guess",
    "seed": 5,
    "model": {"new": {"hidden_size": 32, "intermediate_size": 64, "layers": 1, "heads": 2}},
    "warm_up": {"sft": {"steps": 30, "batch_size": 8, "learning_rate": 1e-2, "warm_up_steps": 5}},
    "rl": {
        "steps": 4, "groups": 4, "group_size": 4, "learning_rate": 1e-2, "entropy": 0.0, "max_new_tokens": 32,
        "checkpoint_every": 1,
    },
}  # fmt: skip


def recipe(trl: dict[str, Any] | None = None, model: dict[str, Any] | None = None, **rl: Any) -> TrlRecipe:
    """The toy's recipe, with changes."""
    data = {**GUESS, "rl": {**GUESS["rl"], **rl}, "trl": trl or {}}
    if model is not None:
        data |= {"model": model}
        del data["warm_up"]
    return make_trl_recipe(data)


def begun(warm: Path, folder: Path) -> Path:
    """``folder`` as a run that has its warm-up behind it, which was done in ``warm``."""
    shutil.copytree(warm, folder, ignore=shutil.ignore_patterns("recipe.json", "rl*", "model"))
    return folder
