"""A recipe: everything that a training run depends on, in one TOML file (see docs/training.md)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from mcpgym.errors import ConfigurationError
from mcpgym.registry import load_environment
from mcpgym_rl.packaged import RECIPE, packaged_file
from mcpgym_rl.training.sections import ModelSection, Rl, Section, WarmUp


class Recipe(Section):
    """A whole training run."""

    environment: str
    """What is trained on."""
    config: dict[str, Any] = Field(default={})
    """Fields of the environment's configuration, for warm-up and training."""
    seed: int = Field(default=0, ge=0)
    """All randomness of the run comes from it."""
    model: ModelSection = ModelSection()
    """What is trained."""
    warm_up: WarmUp | None = None
    """Supervised fine-tuning first; leave the table out to begin with reinforcement learning."""
    rl: Rl | None = None
    """Reinforcement learning; leave the table out for warm-up alone."""
    then: tuple[Rl, ...] = ()
    """Further stages of it (``[[then]]``), each from the best state of the one before, with a new optimizer. After one
    that reached its certificate only those come that are to go beyond it (``further``)."""

    @model_validator(mode="after")
    def _something_before(self) -> Self:
        if self.then and self.rl is None:
            raise ValueError("[[then]] goes on from [rl], which is not there")
        return self

    @model_validator(mode="after")
    def _vllm_has_the_weights(self) -> Self:
        stages = [stage for stage in (self.rl, *self.then) if stage is not None and stage.vllm is not None]
        if not stages:
            return self
        if not self.model.lora_rank:
            raise ValueError("rl.vllm samples with adapters upon a model that vLLM has: give model.lora_rank")
        if self.warm_up is not None or self.then:
            raise ValueError(
                "rl.vllm: vLLM serves the model that training begins with, which warm_up and [[then]] would change; "
                "run them apart, and go on from their model/ (model.path)"
            )
        if any(stage.hot_min_p and "hot_min_p" in stage.model_fields_set for stage in stages):
            raise ValueError("rl.vllm: vLLM states no log-probabilities that min_p leaves alone: say hot_min_p = 0")
        return self


def find_recipe(what: str, changes: Mapping[str, Any] | None = None) -> Recipe:
    """The recipe that ``what`` means: a TOML file's, or that of an environment, by its name.

    An environment's recipe is ``recipe.toml`` beside its module; without one it is the default recipe, with a warm-up
    where the environment has a teacher, and with certificates where it has a tree.

    Args:
        what: the file or the name.
        changes: fields and their values (``rl.steps`` → 5) that replace the recipe's.

    Raises:
        ConfigurationError: there is neither, or the recipe is wrong.
    """
    return make_recipe(*find_recipe_data(what, changes))


def find_recipe_data(what: str, changes: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], str]:
    """The same before it is checked, as it was written, and where it is from.

    Raises:
        ConfigurationError: there is neither, or it is no TOML.
    """
    path = Path(what)
    if path.suffix == ".toml" or path.is_file():
        return _changed(_read_toml(path), changes), str(path)
    environment = load_environment(what)
    packaged = packaged_file(environment, RECIPE)
    if packaged is not None:
        return _changed(_read_toml(packaged), changes), str(packaged)
    data: dict[str, Any] = {"environment": what, "rl": {}}
    if environment.teacher(0.95) is not None:
        data["warm_up"] = {}
    return _changed(data, changes), f"the default recipe for {what}"


def make_recipe(data: Mapping[str, Any], source: str = "recipe") -> Recipe:
    """The recipe that ``data`` is.

    Raises:
        ConfigurationError: a key or value is wrong; the message names which, and ``source``.
    """
    return checked(Recipe, data, source)


R = TypeVar("R", bound=Recipe)


def checked(kind: type[R], data: Mapping[str, Any], source: str) -> R:
    """``data`` as a recipe of this kind.

    Raises:
        ConfigurationError: as :func:`make_recipe`.
    """
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise ConfigurationError(f"{source}: {'; '.join(map(_problem, error.errors(include_url=False)))}") from None


def _problem(item: Any) -> str:
    where = ".".join(map(str, item["loc"])) or "the recipe"
    if item["type"] == "extra_forbidden":
        if where == "trl":
            return "[trl] is for --engine trl; our own trainer has no use for it"
        return f"there is no field {where}"
    return f"{where}: {item['msg'][:1].lower()}{item['msg'][1:]}, not {str(item['input'])[:80]!r}"


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(f"cannot read the recipe {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is no TOML: {error}") from None


def _changed(data: dict[str, Any], changes: Mapping[str, Any] | None) -> dict[str, Any]:
    for dotted, value in (changes or {}).items():
        _set(data, dotted, value)
    return data


def _set(data: dict[str, Any], dotted: str, value: Any) -> None:
    *tables, key = dotted.split(".")
    for table in tables:
        inner = data.setdefault(table, {})
        if not isinstance(inner, dict):
            raise ConfigurationError(f"--set {dotted}: {table} is not a table of the recipe")
        data = inner
    data[key] = value
