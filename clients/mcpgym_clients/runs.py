"""Runs on disk, as whoever reads them wants them: the folders below some paths, and what one of them holds."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.files import RUN, SUMMARY, TRACES, find_traces
from mcpgym_rl.traces import Trace, read_traces


@dataclass(frozen=True, slots=True)
class Run:
    """One run: where it is, what ``summary.json`` says of it, and its traces, one for each episode, by their place.

    ``summary`` is None where there is none that can be read: the run goes on, was killed, or its traces stand alone.
    ``torn`` is what :func:`~mcpgym_rl.traces.read_traces` says of an incomplete last line.
    """

    folder: Path
    summary: Mapping[str, Any] | None
    traces: Sequence[Trace]
    torn: str = ""

    options: Mapping[str, Any] = field(default_factory=dict)
    """What ``run.json`` says was asked for; empty where there is none that can be read."""

    @property
    def about(self) -> Mapping[str, Any]:
        """What was asked for: the ``run`` of its summary, else ``options``; empty where neither is known."""
        about = (self.summary or {}).get("run")
        return about if isinstance(about, Mapping) else self.options


def load_run(path: str | Path) -> Run:
    """The run in the folder ``path``, or the one whose traces the file ``path`` has.

    Raises:
        UsageProblem: there are no traces.
        ConfigurationError: the file is no trace file.
    """
    file = find_traces(Path(path))
    traces = read_traces(file)
    options = (_beside(file, RUN) or {}).get("options")
    asked = options if isinstance(options, dict) else {}
    return Run(file.parent, _beside(file, SUMMARY), one_for_each(traces), traces.torn, asked)


def find_runs(paths: Iterable[str | Path]) -> list[Path]:
    """The folders that hold traces, in each of ``paths`` and below, in order and each once.

    A path that is a file stands for itself. Hidden folders, and those behind links, are passed over.

    Raises:
        UsageProblem: there is no such path.
    """
    return list(dict.fromkeys(path for path, files in walked(paths) if files is None or TRACES in files))


def walked(paths: Iterable[str | Path]) -> Iterator[tuple[Path, list[str] | None]]:
    """Each file of ``paths``, with None, and each folder, itself and those below, with the names of its files.

    In order; hidden folders, and those behind links, are passed over.

    Raises:
        UsageProblem: there is no such path.
    """
    for path in map(Path, paths):
        if not path.exists():
            raise UsageProblem(f"there is no {path}")
        if path.is_file():
            yield path, None
            continue
        for folder, below, files in os.walk(path):
            below[:] = sorted(name for name in below if not name.startswith("."))
            yield Path(folder), files


def one_for_each(traces: Iterable[Trace]) -> list[Trace]:
    """One trace for each episode of a run, by their place: of several, the last that has a score, else the last."""
    kept: dict[tuple[int, str, str, int, int], Trace] = {}
    for trace in traces:
        key = (trace.place, trace.environment, trace.task, trace.seed, trace.repeat)
        if trace.scored or key not in kept or not kept[key].scored:
            kept[key] = trace
    return sorted(kept.values(), key=lambda trace: trace.place)


def _beside(traces: Path, name: str) -> Mapping[str, Any] | None:
    """What the JSON file beside these traces has. One that cannot be read hides no trace."""
    path = traces.parent / name
    if traces.name != TRACES or not path.is_file():  # a pipe of that name would never end
        return None
    with suppress(OSError, ValueError, RecursionError):
        read = json.loads(path.read_text("utf-8"))
        return read if isinstance(read, dict) else None
    return None
