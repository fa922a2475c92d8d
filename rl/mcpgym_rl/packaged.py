"""Files that an environment's package ships beside its code: a recipe, trained models."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mcpgym.environment import Environment

RECIPE = "recipe.toml"
"""How a model for the environment is trained."""
MODELS = "models"
"""The folder of trained models; ``local:NAME`` is the one in ``models/NAME``."""


def packaged_file(
    environment: Environment[Any, Any, Any] | type[Environment[Any, Any, Any]], *parts: str
) -> Path | None:
    """The file or folder ``parts`` beside the module that defines ``environment``; None where there is none."""
    cls = environment if isinstance(environment, type) else type(environment)
    file = getattr(cls, "package_file", None)  # of one in a virtual environment of its own (mcpgym.isolated)
    file = file or getattr(sys.modules.get(cls.__module__), "__file__", None)
    if file is None:
        return None
    found = Path(file).parent.joinpath(*parts)
    return found if found.exists() else None
