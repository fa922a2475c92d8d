"""``mcpgym new-model`` and ``mcpgym import-gguf``: a model directory where there was none."""

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
from mcpgym_rl.gguf import import_gguf
from mcpgym_rl.local.weights import weight_files
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
        raise UsageProblem("; ".join(map(_problem, error.errors(include_url=False)))) from None
    config = parse_config(options.config, [options.environment])[options.environment]
    environment = load_environment(options.environment, config)
    folder = new_model(environment, options.out, seed=options.seed, size=size)
    _say(folder, "it knows nothing yet:", environment.name)


def _problem(item: Any) -> str:
    option = "--" + str(item["loc"][0]).replace("_", "-") + ": " if item["loc"] else ""
    return option + str(item["msg"]).removeprefix("Value error, ")


def run_import(file: Path, folder: Path) -> None:
    """Write the model in a GGUF file as a directory, and say what it is.

    Raises:
        ConfigurationError: it cannot be.
    """
    _say(import_gguf(file, folder), "play it:", "ENV")


def _say(folder: Path, what: str, environment: str) -> None:
    from safetensors import safe_open

    parameters = 0
    for path in weight_files(folder):
        with safe_open(path, framework="numpy") as file:
            parameters += sum(_product(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    vocabulary = json.loads((folder / "config.json").read_text("utf-8"))["vocab_size"]
    out().print(
        f"[bold]{parameters:,}[/bold] parameters, a vocabulary of [bold]{vocabulary:,}[/bold] tokens: "
        f"{escaped(folder)}",
        soft_wrap=True,
    )
    where = escaped(shlex.quote(f"local:{folder}"))
    out().print(f"[dim]{what}[/dim] mcpgym eval {environment} --policy {where}", soft_wrap=True)


def _product(shape: Sequence[int]) -> int:
    made = 1
    for length in shape:
        made *= length
    return made
