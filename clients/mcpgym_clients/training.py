"""``mcpgym train``: a recipe from beginning to end, or from where it was interrupted."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.telemetry.settings import telemetry
from mcpgym_clients.console import escaped, out, talk
from mcpgym_clients.failures import FAILURE, CommandFailed, UsageProblem
from mcpgym_clients.training_progress import TrainingProgress

if TYPE_CHECKING:
    from mcpgym_rl.training.pipeline import Outcome, Pipeline
    from mcpgym_rl.training.recipe import Recipe

EXTRA = (
    "training needs PyTorch and transformers, which are not installed: pip install 'mcpgym[rl]' (on Linux without an "
    "NVIDIA GPU, install PyTorch's CPU build first: it is far smaller)"
)
TRL_EXTRA = "training with TRL needs TRL: pip install 'mcpgym[trl]'"


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What was typed."""

    what: str | None
    out: Path | None
    resume: Path | None
    seed: int | None
    changes: Sequence[str]
    engine: str | None = None


def run(options: TrainOptions) -> int:
    """Train; the exit code: 0 when training came to its end, 1 when a guard stopped it or its goal was not reached."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # on shared cores two threads can be many times slower than one
    try:
        import torch

        from mcpgym_rl.training.guards import TrainingStopped
    except ModuleNotFoundError as error:
        raise CommandFailed(f"{EXTRA} ({error.name} is missing)") from None
    if "OMP_NUM_THREADS" not in os.environ or os.environ["OMP_NUM_THREADS"] == "1":
        torch.set_num_threads(1)
    recipe = _what(options)
    pipeline = _pipeline(recipe)
    folder = _where(options, recipe)
    first = _rank() == 0  # of several processes, which accelerate or torchrun started, one speaks
    if first:
        went_on = f"interrupted, it goes on with --resume {escaped(folder)}"
        talk().print(f"training in [bold]{escaped(folder)}[/bold]; {went_on}")
    with TrainingProgress(recipe) as progress, telemetry("mcpgym-train"):
        try:
            outcome = pipeline(recipe, folder, progress.report).run()
        except TrainingStopped as error:
            raise CommandFailed(f"{error}. Everything up to here is in {folder}") from None
        except FloatingPointError as error:
            raise CommandFailed(f"{error}. Try a lower learning rate") from None
        except KeyboardInterrupt:
            talk().print(f"interrupted; go on with: mcpgym train --resume {escaped(folder)}", soft_wrap=True)
            raise
    if first:
        _tell(outcome, recipe)
    reached = outcome.certificate is None or outcome.finished == "certified"
    return 0 if reached else FAILURE


def _pipeline(recipe: Recipe) -> type[Pipeline]:
    """What runs this recipe: our own trainer, or TRL."""
    from mcpgym_rl.training.pipeline import Pipeline
    from mcpgym_rl.trl.recipe import TrlRecipe

    if not isinstance(recipe, TrlRecipe):
        return Pipeline
    try:
        import trl  # noqa: F401

        from mcpgym_rl.trl.pipeline import TrlPipeline
        from mcpgym_rl.trl.settings import check_settings
    except ModuleNotFoundError as error:
        raise CommandFailed(f"{TRL_EXTRA} ({error.name} is missing)") from None
    check_settings(recipe)
    return TrlPipeline


def _what(options: TrainOptions) -> Recipe:
    """The recipe that was asked for."""
    from mcpgym_rl.training.recipe import find_recipe, make_recipe
    from mcpgym_rl.trl.recipe import ENGINE, find_trl_recipe, make_trl_recipe

    if options.engine not in (None, "own", ENGINE):
        raise UsageProblem(f"--engine {options.engine}: there is own (the default) and {ENGINE}")
    changes = _changes(options.changes)
    if options.seed is not None:
        changes["seed"] = options.seed
    if options.resume is not None:
        path = options.resume / "recipe.json"
        if options.what is not None or options.out is not None or changes:
            raise UsageProblem(
                "--resume goes on with a run as it was begun; it takes no recipe, --out, --seed or --set"
            )
        if not path.is_file():
            raise UsageProblem(f"--resume {options.resume}: there is no recipe.json in it, so no run to go on with")
        data = json.loads(path.read_text("utf-8"))
        began = ENGINE if ENGINE in data else "own"
        if options.engine not in (None, began):
            raise UsageProblem(f"--resume {options.resume}: that run was begun with --engine {began}")
        return (make_trl_recipe if began == ENGINE else make_recipe)(data, str(path))
    if options.what is None:
        raise UsageProblem("what is to be trained? Name an environment, a recipe (FILE.toml), or --resume FOLDER")
    return (find_trl_recipe if options.engine == ENGINE else find_recipe)(options.what, changes)


def _where(options: TrainOptions, recipe: Recipe) -> Path:
    """The run's folder."""
    from mcpgym_clients.files import run_folder
    from mcpgym_rl.trl.recipe import TrlRecipe

    together = int(os.environ.get("WORLD_SIZE", "1")) > 1  # as accelerate and torchrun say
    if together and not isinstance(recipe, TrlRecipe):
        raise UsageProblem("our own trainer is one process: leave accelerate and torchrun out, or say --engine trl")
    if options.resume is not None:
        return options.resume
    if together and options.out is None:
        raise UsageProblem("several processes train together: say --out, so that all of them mean the same folder")
    if options.out is not None and _rank():
        return options.out  # the first process looks into it, and begins
    if options.out is not None and options.out.is_dir() and any(options.out.iterdir()):
        there = f"--out {options.out} is not empty"
        raise UsageProblem(f"{there}; name another folder, or go on with the run in it: --resume {options.out}")
    return run_folder(options.out, "train", recipe.environment)


def _rank() -> int:
    """Which of several processes this is."""
    return int(os.environ.get("RANK", "0"))


def _changes(given: Sequence[str]) -> dict[str, Any]:
    """``rl.steps=5`` as TOML values; what is no TOML value is text."""
    import tomllib

    changes: dict[str, Any] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise UsageProblem(f"--set {item!r}: write a field of the recipe and its value, as in --set rl.steps=5")
        try:
            changes[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            changes[name.strip()] = value
    return changes


def _tell(outcome: Outcome, recipe: Recipe) -> None:
    console = out()
    console.print(f"model: [bold]{escaped(outcome.model)}[/bold], after {outcome.cpu_seconds:.0f} CPU seconds")
    if outcome.certificate is not None:
        console.print(escaped(_verdict(outcome.certificate, outcome.finished)), soft_wrap=True)
    elif outcome.finished not in ("steps", "warm-up"):
        console.print(f"it ended for: {escaped(_why(outcome.finished))}", soft_wrap=True)
    settings = "".join(f" --config {shlex.quote(f'{name}={_text(value)}')}" for name, value in recipe.config.items())
    measure = (
        f"mcpgym eval {shlex.quote(recipe.environment)}{settings} --policy {shlex.quote(f'local:{outcome.model}')}"
    )
    console.print(f"measure it: {escaped(measure)}", soft_wrap=True)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _verdict(certificate: Mapping[str, Any], finished: str) -> str:
    lines, lost, unfinished = (certificate[name] for name in ("lines", "lost_lines", "unfinished_lines"))
    random = certificate["versus_random"]
    shares = f"{random['win']:.2%} won, {random['draw']:.2%} drawn, {random['loss']:.2%} lost against random play"
    head = "certified" if finished == "certified" else f"not there yet (it ended for: {_why(finished)})"
    return f"{head}: {lines} lines of play, {lost} lost, {unfinished} unfinished; {shares} (exact)"


def _why(finished: str) -> str:
    """A limit by its name, in words; or a guard's message as it is."""
    return finished.replace("_", " ") if finished.isidentifier() else finished
