"""What the list of runs says of each: a card. Whatever a file holds, a card can be made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym_clients.files import RUN, SUMMARY
from mcpgym_clients.report import notes
from mcpgym_clients.summary import Summary
from mcpgym_clients.viewer.library import Item, Library
from mcpgym_clients.viewer.training_runs import RECIPE, certificate, read_object, stage_names
from mcpgym_rl.traces import Trace

_Stamp = tuple[tuple[int, int] | None, ...]


class Cards:
    """Makes the cards of a library's items, and keeps them while their files stay as they are."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._summaries: dict[Path, tuple[_Stamp, dict[str, Any]]] = {}

    def card(self, item: Item) -> dict[str, Any]:
        """The card of anything."""
        made: dict[str, Any] = {"kind": item.kind, "name": item.name, "folder": str(item.folder)}
        try:
            match item.kind:
                case "evaluation":
                    made |= evaluation_card(self.summary(item))
                case "training":
                    made |= _training_card(item)
                case "certificate":
                    made |= _certificate_card(item)
        except (OSError, ConfigurationError) as error:
            made["problem"] = str(error)
        return made

    def summary(self, item: Item) -> dict[str, Any]:
        """The ``summary.json`` of an evaluation; made of its traces where there is none, or none that can be read.

        Raises:
            OSError: the traces cannot be read.
            ConfigurationError: they have changed under us.
        """
        file = item.files[0]
        beside = file.parent / SUMMARY
        stamp = _stamp(file), _stamp(beside)
        known = self._summaries.get(file)
        if known is None or known[0] != stamp:
            own = read_object(beside) if file.name == "traces.jsonl" else None
            made = own if own is not None and _sound(own) else self._from_traces(item)
            known = self._summaries[file] = stamp, made
        return known[1]

    def max_turns(self, item: Item) -> int | None:
        """The limit on turns that a run had of its own."""
        run = read_object(item.folder / SUMMARY) or {}
        options = read_object(item.folder / RUN) or {}
        given = _mapping(run.get("run")).get("max_turns") or _mapping(options.get("options")).get("max_turns")
        return given if isinstance(given, int) and given > 0 else None

    def _from_traces(self, item: Item) -> dict[str, Any]:
        summary, first, tasks = Summary(), None, set()
        for trace in self._library.index(item).traces():
            summary.add(trace)
            tasks.add(trace.task)
            first = first or trace
        about = {} if first is None else _about(first, len(tasks))
        return {**summary.as_json(), "complete": None, "run": {**_asked(item.folder), **about}}


def evaluation_card(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What a summary says, in short. ``complete`` is None where there is no summary yet: it runs, or was killed."""
    run = _mapping(summary.get("run"))
    complete = summary.get("complete")
    return {
        **{name: text(run.get(name)) for name in ("environment", "policy", "split", "command", "started", "lane")},
        "version": text(run.get("environment_version")),
        "schema_hash": text(run.get("schema_hash")),
        "config": run.get("config") if isinstance(run.get("config"), Mapping) else {},
        "seed": None if (seed := number(run.get("seed"))) is None else str(seed),
        "tasks": number(run.get("n")),
        "repeats": number(run.get("repeats")),
        "planned": number(run.get("planned")),
        "seconds": number(run.get("seconds")),
        "complete": complete if isinstance(complete, bool) else None,
        "episodes": number(summary.get("episodes")) or 0,
        "scored": number(summary.get("scored")) or 0,
        "distinct": number(summary.get("distinct_episodes")),
        "reward": _estimate(summary.get("reward"), "mean"),
        "outcomes": {
            name: {"mean": share, "interval": interval(_mapping(summary.get("outcome_intervals")).get(name))}
            for name, share in _numbers(summary.get("outcomes")).items()
        },
        "exact": _numbers(_mapping(summary.get("exact")).get("outcomes")),
    }


def evaluation_details(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What a summary says besides its card."""
    try:
        said = notes(summary)
    except (KeyError, TypeError, AttributeError, ValueError):  # another version's
        said = []
    counts = _mapping(summary.get("component_counts"))
    intervals = _mapping(summary.get("component_intervals"))
    return {
        "notes": said,
        "components": {
            name: {"mean": number(value), "interval": interval(intervals.get(name)), "n": number(counts.get(name))}
            for name, value in _mapping(summary.get("components")).items()
        },
        "penalised": {name: _estimate(item, "share") for name, item in _mapping(summary.get("penalised")).items()},
        "unscored": _numbers(summary.get("unscored")),
        "turns": _numbers(summary.get("turns")),
        "tokens": _numbers(summary.get("tokens")),
        "effective": number(summary.get("effective_sample_size")),
        "passes": _passes(summary.get("passes")),
        "cost": number(_mapping(summary.get("cost")).get("usd")),
    }


def _passes(value: Any) -> dict[str, Any] | None:
    """pass@k and pass^k, where tasks were repeated."""
    given = _mapping(value)
    rates = given.get("rates")
    if not isinstance(rates, list) or not rates:
        return None
    names = ("k", "tasks", "pass_at_k", "pass_hat_k")
    return {
        "success": text(given.get("success")),
        "rates": [
            {
                **{name: number(_mapping(rate).get(name)) for name in names},
                **{f"{name}_interval": interval(_mapping(rate).get(f"{name}_interval")) for name in names[2:]},
            }
            for rate in rates[:64]
        ],
    }


def _training_card(item: Item) -> dict[str, Any]:
    recipe = read_object(item.folder / RECIPE) or {}
    found = None if item.certificate is None else certificate(read_object(item.certificate) or {})
    return {
        "environment": text(recipe.get("environment")) or text((found or {}).get("environment")),
        "policy": text((found or {}).get("policy")),
        "stages": stage_names(item.folder, item.files),
        "certificate": None if found is None else _short(found),
        "modified": max((path.stat().st_mtime for path in item.files), default=None),
    }


def _certificate_card(item: Item) -> dict[str, Any]:
    found = certificate(read_object(item.files[0]) or {})
    if found is None:
        return {"problem": "the file certificate.json is none, or of another version"}
    return {
        "environment": text(found.get("environment")),
        "version": text(found.get("environment_version")),
        "policy": text(found.get("policy")),
        "certificate": _short(found),
    }


def _short(found: Mapping[str, Any]) -> dict[str, Any]:
    names = ("lines", "won_lines", "drawn_lines", "lost_lines", "unfinished_lines", "invalid_moves", "blunders")
    return {"certified": found.get("certified") is True, **{name: number(found.get(name)) for name in names}}


def _about(trace: Trace, tasks: int) -> dict[str, Any]:
    return {
        "environment": trace.environment,
        "environment_version": trace.environment_version,
        "policy": trace.policy,
        "split": trace.split,
        "config": dict(trace.config),
        "schema_hash": trace.schema_hash,
        "n": tasks,
    }


def _asked(folder: Path) -> dict[str, Any]:
    """What ``run.json`` says of a run that has no summary yet."""
    begun = read_object(folder / RUN) or {}
    options = _mapping(begun.get("options"))
    tasks, repeats = number(options.get("tasks")), number(options.get("repeats"))
    return {
        "environment": begun.get("environment"),
        "environment_version": begun.get("environment_version"),
        "started": begun.get("started"),
        **{name: options.get(name) for name in ("policy", "split", "seed", "repeats")},
        "planned": tasks * repeats if tasks and repeats else None,
    }


def _sound(summary: Mapping[str, Any]) -> bool:
    """Whether the parts that everything else leans on are there."""
    return isinstance(summary.get("reward"), Mapping) and number(summary.get("episodes")) is not None


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _estimate(value: Any, name: str) -> dict[str, Any]:
    given = _mapping(value)
    return {"mean": number(given.get(name)), "interval": interval(given.get("interval")), "n": number(given.get("n"))}


def interval(value: Any) -> list[float] | None:
    """``[low, high]``, if it is that."""
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
        return None
    low, high = number(value[0]), number(value[1])
    return None if low is None or high is None else [low, high]


def number(value: Any) -> Any:
    """A finite number, if it is one."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return value if known else None


def text(value: Any) -> str | None:
    """A text, if it is one."""
    return value if isinstance(value, str) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _numbers(value: Any) -> dict[str, Any]:
    return {str(name): item for name, item in _mapping(value).items() if number(item) is not None}
