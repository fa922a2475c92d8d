"""Where each trace of a file stands, and what a list of them shows: the traces themselves stay on the disk."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcpgym.errors import ConfigurationError
from mcpgym_clients.summary import why_unscored
from mcpgym_clients.viewer.selecting import Selection
from mcpgym_rl.traces import Trace

_PLAIN = re.compile(r"[A-Za-z0-9 _.,:-]+")


@dataclass(frozen=True, slots=True)
class Row:
    """What a list shows of one trace. ``errors`` counts answers that were errors, ``penalised`` says that a component
    is below 0; ``blunders`` and ``missed`` are None until its moves have been weighed, and where they cannot be."""

    n: int
    place: int
    task: str
    split: str
    seed: int
    repeat: int
    total: float | None
    outcome: str | None
    unscored: str | None
    stop: str
    turns: int
    calls: int
    errors: int
    penalised: bool
    blunders: int | None = None
    missed: int | None = None

    @property
    def bad(self) -> bool:
        """Whether the trace is worth looking into: unscored, lost, penalised, or paid nothing at all."""
        return self.total is None or self.outcome == "loss" or self.total <= 0 or self.penalised


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row, where its line is, and what tells which episode it is of."""

    row: Row
    offset: int
    length: int

    @property
    def episode(self) -> tuple[int, str, int, int]:
        return self.row.place, self.row.task, self.row.seed, self.row.repeat


class TraceIndex:
    """The traces of one file, one for each episode, numbered by their place. What is appended later is read later.

    Of several traces of an episode the last that has a score counts, else the last, as :mod:`mcpgym_clients.runs` has
    it. ``faults`` says which lines are no traces, ``torn`` whether
    the last one is incomplete.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.faults: list[str] = []
        self.torn = ""
        self.rows: list[Row] = []
        self._places: list[tuple[int, int]] = []
        self._entries: dict[tuple[int, str, int, int], _Entry] = {}
        self._end = self._line = 0
        self._identity: tuple[int, int] | None = None
        self._lock = threading.RLock()

    def refresh(self) -> bool:
        """Read what is new in the file; whether there was anything.

        Raises:
            OSError: it cannot be read.
        """
        with self._lock, self.file.open("rb") as file:
            found = os.fstat(file.fileno())
            if self._identity != (found.st_dev, found.st_ino) or found.st_size < self._end:
                self._identity = found.st_dev, found.st_ino
                self._entries, self._end, self._line, self.faults = {}, 0, 0, []
            elif found.st_size == self._end:
                return False
            file.seek(self._end)
            self.torn = ""
            for line in file:
                if not line.endswith(b"\n") and not _whole(line):
                    self.torn = f"line {self._line + 1} is incomplete (its run writes, or was killed) and was left out"
                    break
                self._line += 1
                self._add(line, self._end)
                self._end += len(line)
            self._number()
            return True

    def _add(self, line: bytes, offset: int) -> None:
        if not line.strip():
            return
        try:
            row = _row(_parsed(line))
        except ConfigurationError as error:
            if len(self.faults) < 20:
                self.faults.append(f"line {self._line} is no trace: {error}")
            return
        entry = _Entry(row, offset, len(line))
        known = self._entries.get(entry.episode)
        if known is None or row.total is not None or known.row.total is None:
            self._entries[entry.episode] = entry

    def _number(self) -> None:
        weighed = {row.n: row for row in self.rows}
        before = {place: n for n, place in enumerate(self._places)}
        ordered = sorted(self._entries.values(), key=lambda entry: entry.row.place)
        self._places = [(entry.offset, entry.length) for entry in ordered]
        self.rows = []
        for n, entry in enumerate(ordered):
            old = weighed.get(before.get(self._places[n], -1))
            self.rows.append(
                replace(
                    entry.row,
                    n=n,
                    blunders=None if old is None else old.blunders,
                    missed=None if old is None else old.missed,
                )
            )

    def weighed(self, n: int, blunders: int, missed: int) -> None:
        """Keep what trace ``n``'s moves were found to be."""
        with self._lock:
            self.rows[n] = replace(self.rows[n], blunders=blunders, missed=missed)

    def trace(self, n: int) -> Trace:
        """The trace with this number.

        Raises:
            IndexError: there is none.
            ConfigurationError: the file has changed under us.
        """
        return next(self.traces([n]))

    def traces(self, numbers: Sequence[int] | None = None) -> Iterator[Trace]:
        """The traces with these numbers (None: all), in their order.

        Raises:
            IndexError: there is none with one of them.
            ConfigurationError: the file has changed under us.
        """
        with self._lock:
            places = list(self._places) if numbers is None else [self._places[n] for n in numbers]
        with self.file.open("rb") as file:
            for offset, length in places:
                file.seek(offset)
                yield Trace.from_dict(_parsed(file.read(length)))

    def select(self, selection: Selection) -> list[Row]:
        """The rows that are asked for, in the order that is asked for."""
        with self._lock:
            rows = [row for row in self.rows if selection.takes(row)]
        if selection.text:
            said = self._said(selection.text, [row.n for row in rows])
            rows = [row for row in rows if row.n in said]
        return selection.sorted(rows)

    def _said(self, text: str, numbers: Sequence[int]) -> set[int]:
        """The traces among ``numbers`` in which ``text`` is said, in whatever case."""
        wanted, found = text.casefold(), set()
        quick = wanted.encode() if _PLAIN.fullmatch(text) else None  # how JSON spells it too
        with self._lock:
            places = [(n, *self._places[n]) for n in numbers]
        with self.file.open("rb") as file:
            for n, offset, length in places:
                file.seek(offset)
                line = file.read(length)
                if quick is not None and quick not in line.lower():
                    continue
                if any(wanted in said.casefold() for said in texts(Trace.from_dict(_parsed(line)))):
                    found.add(n)
        return found


def texts(trace: Trace) -> Iterator[str]:
    """What a search looks at: all that was said and called, the task, and what failed."""
    yield trace.task
    if trace.error is not None:
        yield trace.error.message
    for message in trace.messages:
        yield message["content"]
        if isinstance(thought := message.get("reasoning_content"), str):
            yield thought
        for call in _list(message.get("tool_calls")):
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                yield f"{function.get('name')} {function.get('arguments')}"


def _row(data: Any) -> Row:
    trace = Trace.from_dict(data)
    score = trace.score
    return Row(
        n=-1,
        place=trace.place,
        task=trace.task,
        split=trace.split,
        seed=trace.seed,
        repeat=trace.repeat,
        total=score.total if score is not None and trace.scored else None,
        outcome=None if score is None else score.game_outcome,
        unscored=None if trace.scored else why_unscored(trace)[0],
        stop=trace.stop_reason,
        turns=trace.turns,
        calls=len(trace.calls),
        errors=sum(bool(message.get("is_error")) for message in trace.messages),
        penalised=score is not None and any(value is not None and value < 0 for value in score.components.values()),
    )


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"it is no JSON: {error}") from None


def _whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
