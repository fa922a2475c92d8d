"""What can be chosen of reasoning-gym."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import Field, field_validator

from mcpgym import Config
from mcpgym_environments.imported.seeds import json_object


class Part(NamedTuple):
    """A dataset and how often it is drawn, in proportion to the others."""

    name: str
    weight: float


class ReasoningGymConfig(Config):
    """Which datasets, how hard, and how many tasks."""

    dataset: str = Field(default="chain_sum", min_length=1, max_length=2_000)
    """The dataset's name; several by commas are mixed, each as often as its weight says: chain_sum*2,gcd."""
    options: str = Field(default="", max_length=20_000)
    """The dataset's own fields, as a JSON object: {"min_terms": 3}. Of several datasets, an object for each name."""
    train_tasks: int = Field(default=10_000, ge=1, le=1_000_000)
    """How many tasks the train split has."""
    test_tasks: int = Field(default=1_000, ge=1, le=1_000_000)
    """How many tasks the test split has; no seed and no question is in both."""

    @field_validator("dataset")
    @classmethod
    def _read(cls, value: str) -> str:
        _parts(value)
        return value

    @field_validator("options")
    @classmethod
    def _an_object(cls, value: str) -> str:
        if odd := {"seed", "size"} & {*json_object(value, '{"min_terms": 3}')}:
            raise ValueError(f"{sorted(odd)[0]} is not for you to set: each task has a seed of its own")
        return value.strip()

    @property
    def parts(self) -> tuple[Part, ...]:
        """The datasets."""
        return _parts(self.dataset)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The options."""
        return dict(json.loads(self.options)) if self.options else {}


def _parts(text: str) -> tuple[Part, ...]:
    found = []
    for item in text.split(","):
        name, star, weight = (part.strip() for part in item.partition("*"))
        try:
            share = float(weight) if star else 1.0
        except ValueError:
            share = 0.0
        if not name.isidentifier() or not 0 < share < 1e6:
            raise ValueError(f"{item.strip()[:60]!r} is no dataset: write NAME or NAME*WEIGHT, several by commas")
        found.append(Part(name, share))
    if len({part.name for part in found}) < len(found):
        raise ValueError("names a dataset twice; give it a weight instead: NAME*2")
    return tuple(found)
