"""``mcpgym new-model``: an untrained model for an environment."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mcpgym.registry import load_environment
from mcpgym_clients.console import escaped, out
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.options import parse_config
from mcpgym_rl.new_model import ModelSize, new_model


@dataclass(frozen=True, slots=True)
class NewModelOptions:
    """What was typed; ``size`` has the fields of a ModelSize that were given."""

    environment: str
    out: Path
    seed: int
    config: Sequence[str]
    size: Mapping[str, Any]


def run(options: NewModelOptions) -> None:
    """Make the model and say what it is.

    Raises:
        UsageProblem, ConfigurationError: what was asked for cannot be.
    """
    try:
        size = ModelSize(**options.size)
    except ValidationError as error:
        problems = (
            f"{'--' + str(item['loc'][0]).replace('_', '-') + ': ' if item['loc'] else ''}{item['msg'].removeprefix('Value error, ')}"
            for item in error.errors(include_url=False)
        )
        raise UsageProblem("; ".join(problems)) from None
    config = parse_config(options.config, [options.environment])[options.environment]
    environment = load_environment(options.environment, config)
    folder = new_model(environment, options.out, seed=options.seed, size=size)
    _say(folder, environment.name)


def _say(folder: Path, environment: str) -> None:
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="numpy") as file:
        shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
    parameters = sum(_product(shape) for shape in shapes)
    vocabulary = json.loads((folder / "config.json").read_text("utf-8"))["vocab_size"]
    out().print(
        f"[bold]{parameters:,}[/bold] parameters, a vocabulary of [bold]{vocabulary:,}[/bold] tokens: "
        f"{escaped(folder)}",
        soft_wrap=True,
    )
    where = escaped(shlex.quote(f"local:{folder}"))
    out().print(f"[dim]it knows nothing yet:[/dim] mcpgym eval {environment} --policy {where}", soft_wrap=True)


def _product(shape: Sequence[int]) -> int:
    made = 1
    for length in shape:
        made *= length
    return made
