"""Checkpoints: all that a run needs to go on as if it had never been interrupted, in one file replaced atomically."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mcpgym.errors import ConfigurationError
from mcpgym_rl.policy import Tokens, Turn
from mcpgym_rl.training.curriculum import KnownLine, Lines
from mcpgym_rl.training.guards import Watch

FILE = "checkpoint.pt"
_VERSION = 2


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The weights that are trained, their average, and the optimizer's state, copied."""

    weights: dict[str, Tensor]
    averaged: dict[str, Tensor]
    optimizer: dict[str, Any]


_KINDS = [each.name for each in fields(Lines)]


@dataclass(slots=True)
class State:
    """Where a run stands between two steps.

    ``step`` is the next one, ``rate_scale`` what the learning rate is multiplied with, ``signal`` the share of groups
    whose rewards differ, averaged over the last steps, ``tasks`` how many ordinary tasks have been played,
    ``cpu_seconds`` the CPU time so far. ``accepted`` is the cost of the certificate that the run would go back to,
    ``best`` the least, of those that lose no more than is allowed if there is one (None before the first; ``safe`` says
    which), ``certificate`` that of the best state.
    """

    step: int = 0
    rate_scale: float = 1.0
    signal: float = 1.0
    tasks: int = 0
    cpu_seconds: float = 0.0
    accepted: float | None = None
    best: float | None = None
    safe: bool = False
    certificate: dict[str, Any] | None = None
    lines: Lines = field(default_factory=Lines)
    watch: Watch = field(default_factory=Watch)
    finished: str | None = None


def take(model: nn.Module, averaged: nn.Module, optimizer: torch.optim.Optimizer) -> Snapshot:
    """A copy of what training changes."""
    return Snapshot(_trained(model), _trained(averaged), _copy(optimizer.state_dict()))


def restore(snapshot: Snapshot, model: nn.Module, averaged: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put a snapshot back, into the tensors that are there."""
    for module, weights in ((model, snapshot.weights), (averaged, snapshot.averaged)):
        own = dict(module.named_parameters())
        with torch.no_grad():
            for name, value in weights.items():
                own[name].copy_(value)
    optimizer.load_state_dict(_copy(snapshot.optimizer))


def save(
    path: Path, recipe: str, state: State, now: Snapshot, accepted: Snapshot | None, best: Snapshot | None
) -> None:
    """Write the checkpoint so that a reader finds the old one or the whole new one, whenever the process dies."""
    data = {
        "version": _VERSION,
        "recipe": recipe,
        "state": _plain_state(state),
        "now": _plain(now),
        "accepted": None if accepted is None else _plain(accepted),
        "best": None if best is None else _plain(best),
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            torch.save(data, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def load(path: Path, recipe: str) -> tuple[State, Snapshot, Snapshot | None, Snapshot | None]:
    """The checkpoint at ``path``: the state, and the snapshots of now, of what was accepted, and of the best.

    It holds tensors and plain values; code in it is never run.

    Raises:
        ConfigurationError: it is of another recipe or version, or is damaged.
    """
    try:
        data = torch.load(path, weights_only=True, map_location="cpu")
        version, written_for = data["version"], data["recipe"]
    except Exception as error:
        raise ConfigurationError(f"{path} is no checkpoint that can be read: {str(error).splitlines()[0]}") from None
    if version != _VERSION:
        raise ConfigurationError(f"{path} was written by another version ({version}); this one reads {_VERSION}")
    if written_for != recipe:
        raise ConfigurationError(
            f"{path} belongs to another recipe: its run had other settings. Resume with the recipe of that run "
            "(recipe.json beside it), or start in another folder"
        )
    raw = data["state"]
    lines = Lines(*(list(map(_line, raw["lines"][kind])) for kind in _KINDS))
    state = State(**{**raw, "lines": lines, "watch": Watch(**raw["watch"])})
    accepted, best = (None if data[name] is None else Snapshot(**data[name]) for name in ("accepted", "best"))
    return state, Snapshot(**data["now"]), accepted, best


def _trained(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters() if value.requires_grad}


def _plain_state(state: State) -> dict[str, Any]:
    made = {item.name: getattr(state, item.name) for item in fields(state)}
    return {**made, "lines": _plain_lines(state.lines), "watch": asdict(state.watch)}


def _plain(snapshot: Snapshot) -> dict[str, Any]:
    return {"weights": snapshot.weights, "averaged": snapshot.averaged, "optimizer": snapshot.optimizer}


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


def _plain_lines(lines: Lines) -> dict[str, list[dict[str, Any]]]:
    return {kind: list(map(_plain_line, getattr(lines, kind))) for kind in _KINDS}


def _plain_line(line: KnownLine) -> dict[str, Any]:
    turns = [
        {"message": turn.message, "ids": None if turn.tokens is None else list(turn.tokens.ids)} for turn in line.turns
    ]
    what = {"cost": line.cost, "missed_win": line.missed_win, "survived": line.survived, "doubt": line.doubt}
    return {"seat": line.seat, "acts": list(line.acts), "turns": turns, **what}


def _line(data: dict[str, Any]) -> KnownLine:
    turns = [Turn(turn["message"], tokens=_own_tokens(turn["ids"])) for turn in data["turns"]]
    what = (data["cost"], data["missed_win"], data["survived"], data["doubt"])
    return KnownLine(data["seat"], tuple(data["acts"]), turns, *what)


def _own_tokens(ids: list[int] | None) -> Tokens | None:
    return None if ids is None else Tokens(ids, [True] * len(ids), [0.0] * len(ids))
