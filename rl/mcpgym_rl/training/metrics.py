"""What a run writes down of every step: metrics.jsonl, TensorBoard events, and the picture of its curves."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mcpgym_rl.traces import Trace
from mcpgym_rl.training.guards import invalid_share

FILE = "metrics.jsonl"


def describe_batch(traces: Sequence[Trace], rewards: Sequence[float | None], temperature: float) -> dict[str, Any]:
    """The means over a batch's scored rollouts, and how many are not scored.

    ``entropy`` is the mean of -log p over the tokens sampled at ``temperature``, the run's: an estimate without bias,
    of all that is sampled and not only of what is trained on.
    """
    scored = [trace for trace in traces if trace.scored]
    known = [reward for reward in rewards if reward is not None]
    names = sorted({name for trace in scored if trace.score for name in trace.score.components})
    components = {
        name: _mean([trace.score.components.get(name) for trace in scored if trace.score is not None]) for name in names
    }
    entropy = _mean([-logprob for trace in scored for logprob in _plain_logprobs(trace, temperature)])
    outcomes = [trace.score.game_outcome for trace in scored if trace.score is not None]
    made: dict[str, Any] = {
        "reward": _mean(known),
        "components": components,
        "unscored": len(traces) - len(scored),
        "invalid": invalid_share(traces),
        "turns": _mean([trace.turns - trace.given_turns for trace in scored]),
        "entropy": entropy,
        "length": _mean([len(trace.tokens.ids) if trace.tokens else 0 for trace in scored]),
    }
    if any(outcomes):
        shares = {name: outcomes.count(name) / len(outcomes) for name in ("win", "draw", "loss")}
        made["outcomes"] = {**shares, "unfinished": outcomes.count(None) / len(outcomes)}
    return made


def _plain_logprobs(trace: Trace, temperature: float) -> Iterator[float]:
    """The log-probabilities of what was sampled at ``temperature``."""
    if (tokens := trace.tokens) is not None:
        heats = tokens.temperatures or [temperature] * len(tokens.ids)
        for own, logprob, heat in zip(tokens.mask, tokens.logprobs, heats, strict=True):
            if own and heat == temperature:
                yield logprob


class Metrics:
    """Appends to ``metrics.jsonl`` in ``folder``, one step a line, and to TensorBoard's events where it is installed.

    Steps from ``first`` on that an interrupted run wrote after its last checkpoint are removed: they come again.
    """

    def __init__(self, folder: Path, first: int) -> None:
        self.path = folder / FILE
        kept = [row for row in read_metrics(folder) if row["step"] < first]
        temporary = self.path.with_name(f".{FILE}")
        temporary.write_text("".join(json.dumps(row) + "\n" for row in kept), "utf-8")
        temporary.replace(self.path)
        self._file = self.path.open("a", encoding="utf-8")
        self._events: Any = _event_writer(folder / "tensorboard", first)

    def write(self, row: Mapping[str, Any]) -> None:
        """Write down one step: ``row`` has ``step``; nested tables become names with slashes in the events."""
        self._file.write(json.dumps(row, allow_nan=False) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._events is not None:
            for name, value in _flat(row):
                if name != "step":
                    self._events.add_scalar(name, value, row["step"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        if self._events is not None:
            self._events.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The steps in a run's ``metrics.jsonl``; a torn last line is left out, and no file is no step."""
    try:
        lines = (folder / FILE).read_text("utf-8").split("\n")
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines[:-1]]


def _event_writer(folder: Path, first: int) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=first)


def _flat(row: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    made: list[tuple[str, float]] = []
    for name, value in row.items():
        if isinstance(value, Mapping):
            made += _flat(value, f"{prefix}{name}/")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            made.append((prefix + name, float(value)))
    return made


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
