"""What there is to look at below some paths: evaluations, training runs and certificates, each with its own name."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.files import TRACES
from mcpgym_clients.viewer.trace_index import TraceIndex
from mcpgym_clients.viewer.training_runs import CERTIFICATE, METRICS, RECIPE

Kind = Literal["evaluation", "training", "certificate"]
FRESH_SECONDS = 2.0
"""How old a listing of the folders may be."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to look at. ``files`` are its traces, the metrics of its stages, or the certificate; ``certificate``
    is that of a training run, where it has one."""

    kind: Kind
    name: str
    folder: Path
    files: tuple[Path, ...]
    certificate: Path | None = None


@dataclass(slots=True)
class _Found:
    """A folder with something in it, and how it is called."""

    name: str
    folder: Path
    traces: Path | None = None
    metrics: list[Path] = field(default_factory=list)
    certificate: Path | None = None


class Library:
    """What lies below ``paths``, looked up again as time goes by. Its methods may be called from any thread.

    A path that is a file stands for the traces in it.

    Raises:
        UsageProblem: there is no such path.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if not path.exists():
                raise UsageProblem(f"there is no {path}")
        self._paths = list(paths)
        self._items: dict[str, Item] = {}
        self._indexes: dict[Path, TraceIndex] = {}
        self._looked = -FRESH_SECONDS
        self._lock = threading.RLock()

    def items(self) -> dict[str, Item]:
        """All there is, by name, in the order of the folders."""
        with self._lock:
            if time.monotonic() - self._looked >= FRESH_SECONDS:
                self._items = {item.name: item for item in _items(_named(self._paths))}
                self._looked = time.monotonic()
            return self._items

    def item(self, name: str, kind: Kind | None = None) -> Item:
        """The item of this name.

        Raises:
            LookupError: there is none (of this kind).
        """
        found = self.items().get(name)
        if found is None or (kind is not None and found.kind != kind):
            raise LookupError(f"there is no {kind or 'run'} {name!r} here (any more)")
        return found

    def index(self, item: Item) -> TraceIndex:
        """The traces of an evaluation, as they are now.

        Raises:
            OSError: they cannot be read.
        """
        with self._lock:
            index = self._indexes.setdefault(item.files[0], TraceIndex(item.files[0]))
        index.refresh()
        return index


def _named(paths: Sequence[Path]) -> Iterator[_Found]:
    """The folders in and below ``paths`` that hold something, each once, under names that differ.

    Hidden folders, and those behind links, are passed over, and so is what is no file (a pipe would never end).
    """
    seen: set[Path] = set()
    names: set[str] = set()
    for top in paths:
        for found in _below(top):
            key = (found.traces or found.folder).resolve()
            if key in seen:
                continue
            seen.add(key)
            name, number = found.name, 2
            while name in names:
                name, number = f"{found.name} ({number})", number + 1
            names.add(name)
            found.name = name
            yield found


def _below(top: Path) -> Iterator[_Found]:
    if top.is_file():
        name = top.resolve().parent.name if top.name == TRACES else top.name
        yield _Found(name, top.parent, traces=top)
        return
    own = top.resolve().name or str(top)
    for place, below, files in os.walk(top):
        below[:] = sorted(name for name in below if not name.startswith("."))
        folder = Path(place)
        relative = folder.relative_to(top).as_posix()
        found = _Found(own if relative == "." else relative, folder)
        there = {name for name in (TRACES, METRICS, CERTIFICATE, RECIPE) if name in files and (folder / name).is_file()}
        if TRACES in there:
            found.traces = folder / TRACES
        if METRICS in there:
            found.metrics = [folder / METRICS]
        if CERTIFICATE in there:
            found.certificate = folder / CERTIFICATE
        if RECIPE in there:
            stages = [folder / name for name in below]
            found.metrics += [stage / METRICS for stage in stages if (stage / METRICS).is_file()]
            below[:] = [name for name in below if not (folder / name / METRICS).is_file()]
        if found.traces or found.metrics or found.certificate:
            yield found


def _items(found: Iterator[_Found]) -> Iterator[Item]:
    for each in found:
        kinds = sum(bool(part) for part in (each.traces, each.metrics))
        if each.traces:
            yield Item("evaluation", each.name, each.folder, (each.traces,))
        if each.metrics:
            name = each.name if kinds == 1 else f"{each.name} training"
            yield Item("training", name, each.folder, tuple(each.metrics), each.certificate)
        elif each.certificate:
            name = each.name if kinds == 0 else f"{each.name} certificate"
            yield Item("certificate", name, each.folder, (each.certificate,), each.certificate)
