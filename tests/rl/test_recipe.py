"""Recipes: what may stand in them, and what is said of what may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_rl.training.recipe import Recipe, find_recipe, make_recipe


def write(folder: Path, text: str) -> str:
    path = folder / "recipe.toml"
    path.write_text(text, "utf-8")
    return str(path)


def test_a_file_is_read_and_changes_are_made_to_it(tmp_path: Path) -> None:
    path = write(tmp_path, 'environment = "tic-tac-toe"\n[rl]\nsteps = 7\n[rl.curriculum.open]\ntemperature = 1.5\n')
    recipe = find_recipe(path, {"seed": 3, "rl.groups": 4, "warm_up.sft.steps": 2, "rl.rewards.game_outcome.win": 2.0})
    assert recipe.rl is not None
    assert recipe.warm_up is not None
    assert (recipe.seed, recipe.rl.steps, recipe.rl.groups, recipe.warm_up.sft.steps) == (3, 7, 4, 2)
    assert recipe.rl.curriculum.open.temperature == 1.5
    assert recipe.rl.rewards.game_outcome == {"win": 2.0}


def test_an_environment_has_a_recipe_of_its_own_and_every_other_a_default_one_that_fits_it() -> None:
    own = find_recipe("tic-tac-toe")
    assert own.environment == "tic-tac-toe"
    assert own.rl is not None
    assert own.rl.certify is not None
    other = find_recipe("reverse-text")
    assert other.warm_up is not None  # it has a teacher
    assert other.rl is not None
    assert make_recipe({"environment": "x", "rl": {"certify": False}}).rl.certify is None  # type: ignore[union-attr]


def test_a_recipe_survives_its_own_json() -> None:
    recipe = find_recipe("tic-tac-toe")
    assert Recipe.model_validate(recipe.model_dump(mode="json")) == recipe


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"rl": {"step": 5}}, "there is no field rl.step"),
        ({"rl": {"steps": 0}}, "rl.steps: input should be greater than 0, not '0'"),
        ({"rl": {"loss": "ppo"}}, "rl.loss: input should be 'grpo', 'cispo' or 'reinforce', not 'ppo'"),
        ({"rl": {"curriculum": {"open_share": 0.8, "weak_share": 0.3}}}, "is 1.1: more than there are"),
        ({"rl": {"curriculum": {"open": {"turns_back": []}}}}, "turns_back needs weights"),
        ({"rl": {"curriculum": {"open": {"random_moves": [0.5, 0.2]}}}}, "two shares in order"),
        ({"rl": {"curriculum": {"unsure_share": 0.3}}}, "open_share + weak_share + unsure_share is 1.1"),
        ({"rl": {"least_others": 8}}, "a turn has 7 others at most"),
        ({"rl": {"form": 0.1}}, "give that too"),
        ({"rl": {}, "then": [{"further": True, "certify": False}]}, "it needs certify, from the first step on"),
        ({"rl": {}, "then": [{"further": True, "certify": {"start": 3}}]}, "it needs certify, from the first step on"),
        ({"model": {"lora_rank": 8}}, "lora_rank adapts a model that exists"),
        ({"model": {"new": {"hidden_size": 65}}}, "must be a multiple of twice the heads"),
        ({"rl": {"learning_rate": float("nan")}}, "rl.learning_rate: input should be a finite number"),
        ({"environment": None}, "environment: input should be a valid string"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(data: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_recipe({"environment": "tic-tac-toe", **data}, "mine.toml")
    assert "mine.toml" in str(caught.value)
    assert said in str(caught.value)


def test_what_cannot_be_read_or_is_no_environment_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read the recipe"):
        find_recipe(str(tmp_path / "none.toml"))
    with pytest.raises(ConfigurationError, match="is no TOML"):
        find_recipe(write(tmp_path, "environment = \n"))
    with pytest.raises(UnknownNameError, match="tic-tac-toe"):
        find_recipe("tic-tac-to")
    with pytest.raises(ConfigurationError, match="environment is not a table"):
        find_recipe("tic-tac-toe", {"environment.name": 1})


def test_a_table_that_is_given_in_part_keeps_the_rest_of_its_own_defaults() -> None:
    """``weak`` has other defaults than ``LineGroups``: they are what the reference shows, given the table or not."""
    own = make_recipe({"environment": "tic-tac-toe", "rl": {}}).rl
    changed = make_recipe({"environment": "tic-tac-toe", "rl": {"curriculum": {"weak": {"max_temperature": 1.5}}}}).rl
    assert own is not None
    assert changed is not None
    assert changed.curriculum.weak == own.curriculum.weak.model_copy(update={"max_temperature": 1.5})
    assert changed.curriculum.open == own.curriculum.open
    with pytest.raises(ConfigurationError, match=r"there is no field rl\.curriculum\.weak\.colour"):
        make_recipe({"environment": "tic-tac-toe", "rl": {"curriculum": {"weak": {"colour": 1}}}})
