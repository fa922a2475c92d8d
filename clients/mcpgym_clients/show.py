"""``mcpgym show``: runs and their traces, as a person reads them in a terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import RenderableType

from mcpgym.errors import ConfigurationError
from mcpgym.messages import Message
from mcpgym_clients.console import warn
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.files import TRACES
from mcpgym_clients.paging import pager
from mcpgym_clients.report import render
from mcpgym_clients.show_runs import distribution, runs_table
from mcpgym_clients.show_trace import render_trace
from mcpgym_clients.viewer.answers import Answers
from mcpgym_clients.viewer.library import Item
from mcpgym_clients.viewer.selecting import Selection
from mcpgym_clients.viewer.trace_index import Row, TraceIndex


@dataclass(frozen=True, slots=True)
class ShowOptions:
    """What was asked for; see the command's help."""

    paths: Sequence[Path]
    index: int | None = None
    selection: Selection = field(default_factory=Selection)
    values: bool = True
    environments: Sequence[str] = ()


def run(options: ShowOptions) -> None:
    """Print the runs below some paths; of one run its summary and traces, or those that are selected.

    Raises:
        UsageProblem: there are none, or not that one.
        ConfigurationError: a file is no trace file.
    """
    from mcpgym_clients.viewer.move_values import given_environments

    answers = Answers(options.paths, given_environments(options.environments))
    items = list(answers.library.items().values())
    own = [item for item in items if item.kind == "evaluation"]
    alone = len(options.paths) == 1 and (options.paths[0].is_file() or (options.paths[0] / TRACES).is_file())
    if alone:
        own = own[:1]
    if not items:
        raise UsageProblem(f"{', '.join(map(str, options.paths))} has no {TRACES}, and no run below it")
    asked = options.index is not None or options.selection != Selection()
    if len(own) == 1 and (alone or asked):
        _show_run(answers, own[0], options)
    elif asked:
        names = ", ".join(item.name for item in own[:5]) or "none"
        raise UsageProblem(f"name one run: there are {len(own)} here ({names}{', …' if len(own) > 5 else ''})")
    else:
        with pager() as console:
            console.print(runs_table([answers.cards.card(item) for item in items]))


def _show_run(answers: Answers, item: Item, options: ShowOptions) -> None:
    index = answers.library.index(item)
    _say_faults(index)
    if options.selection.only == "mistakes" or options.selection.order.endswith("mistakes"):
        answers.weigh(item.name)
    rows = _chosen(index.select(options.selection), options)
    with pager() as console:
        if options.index is None and options.selection == Selection():
            for part in _whole(answers, item, index):
                console.print(part)
                console.print()
        rules: list[Message] = []
        max_turns = answers.cards.max_turns(item)
        for row in rows:
            trace = index.trace(row.n)
            weighed = answers.games.weigh(trace, max_turns) if options.values else None
            console.print(render_trace(trace, row.n, known=rules, weighed=weighed))
            console.print()
            rules = [message for message in trace.messages if message["role"] == "system"]
        if not rows and options.selection.only == "bad":
            console.print(f"None of the {len(index.rows)} traces was lost, penalised or left unscored.")
        elif not rows:
            console.print(f"None of the {len(index.rows)} traces is like that.")


def _say_faults(index: TraceIndex) -> None:
    """Warn of lines that are no traces; where there is nothing else, that is the end.

    Raises:
        UsageProblem: there is no whole trace.
        ConfigurationError: there are lines, and none is a trace.
    """
    if not index.rows:
        if index.faults:
            raise ConfigurationError(f"{index.file}: {index.faults[0]}")
        raise UsageProblem("there is no whole trace in that file")
    for fault in index.faults:
        warn(f"{index.file}: {fault}; it was left out")
    if index.torn:
        warn(f"{index.file}: {index.torn}")


def _chosen(rows: list[Row], options: ShowOptions) -> list[Row]:
    """The rows that are asked for by their place among those selected; all where none is."""
    index = options.index
    if index is None:
        return rows
    if not -len(rows) <= index < len(rows):
        what = "traces" if options.selection == Selection() else "such traces"
        there = f"there are {len(rows)} {what}, 0 to {len(rows) - 1}" if rows else f"there are no {what}"
        raise UsageProblem(f"--index {index}: {there}")
    return [rows[index]]


def _whole(answers: Answers, item: Item, index: TraceIndex) -> Iterator[RenderableType]:
    """What comes before the traces of a run."""
    if not (item.folder / "summary.json").is_file():
        return
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):  # another version's hides no trace
        yield render(answers.cards.summary(item))
        yield distribution(index.rows)
