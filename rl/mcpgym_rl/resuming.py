"""Runs that go on where they were killed: which episodes are done, and what becomes of those that are not.

``traces.jsonl`` has one line for each episode, appended while the run is under way. When a run goes on, the lines of
episodes without a score are moved to ``attempts.jsonl``, for these are played again; nothing is lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from mcpgym_rl.files import sync_folder
from mcpgym_rl.traces import Trace, TraceWriter, read_lines

TRACES, ATTEMPTS = "traces.jsonl", "attempts.jsonl"

SYNC_SECONDS = 1.0
"""How much of a run a power cut may take."""


def finished(folder: Path) -> Iterator[Trace]:
    """The traces in ``folder`` that have a score, one for each place, in the order of their lines."""
    for _, trace, kept in _lines(folder / TRACES):
        if kept:
            yield trace


def attempts(folder: Path) -> Iterator[Trace]:
    """The traces of the episodes that were played again."""
    if (folder / ATTEMPTS).exists():
        yield from (trace for _, trace in read_lines(folder / ATTEMPTS))


def settle(folder: Path) -> None:
    """Leave in ``traces.jsonl`` only whole lines with a score, one for each place; the others go to ``attempts.jsonl``.

    Killed at any moment, it is simply called again. The folder must be :func:`~mcpgym_rl.locks.locked`.

    Raises:
        ConfigurationError: a line is no trace.
        OSError: the disk takes no more.
    """
    path = folder / TRACES
    moved = [line for line, _, kept in _lines(path) if not kept]
    if not moved:
        return  # a torn last line is cut off when the file is opened to be written
    gone = folder / ATTEMPTS
    there = {_digest(line) for line, _ in read_lines(gone)} if gone.exists() else set()
    with TraceWriter(gone, sync=SYNC_SECONDS) as writer:
        for line in moved:
            if _digest(line) not in there:  # it is, when the last one to do this was killed just here
                writer.write_line(line)
    sync_folder(folder)
    temporary = folder / f".{TRACES}"
    temporary.unlink(missing_ok=True)
    with TraceWriter(temporary, sync=SYNC_SECONDS) as writer:
        for line, _, kept in _lines(path):
            if kept:
                writer.write_line(line)
    temporary.replace(path)
    sync_folder(folder)


def _lines(path: Path) -> Iterator[tuple[bytes, Trace, bool]]:
    """Each line, its trace, and whether it counts."""
    seen: set[int] = set()
    for line, trace in read_lines(path) if path.exists() else ():
        kept = trace.score is not None and trace.place not in seen
        if kept:
            seen.add(trace.place)
        yield line, trace, kept


def _digest(line: bytes) -> bytes:
    return hashlib.sha256(line.rstrip(b"\n")).digest()
