"""What a page can ask: all its data, as plain JSON values. The site answers with it, an exported file holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcpgym.environment import Environment
from mcpgym.errors import ConfigurationError
from mcpgym_clients.viewer.cards import Cards, evaluation_details
from mcpgym_clients.viewer.comparing_runs import compare
from mcpgym_clients.viewer.distributions import counts, histogram
from mcpgym_clients.viewer.library import Library
from mcpgym_clients.viewer.move_values import Games
from mcpgym_clients.viewer.reading import read_trace
from mcpgym_clients.viewer.selecting import Selection
from mcpgym_clients.viewer.token_texts import Tokenizers
from mcpgym_clients.viewer.trace_index import Row
from mcpgym_clients.viewer.training_runs import certificate, read_object, read_stages

PAGE = 100
"""Rows of a list that are sent at once."""
_UNSEEN = frozenset({"place", "split"})


class Answers:
    """Answers about what lies below some paths. Every method may be called from any thread, and takes its time.

    Args:
        paths: folders, or files of traces.
        environments: those that are not installed, whose games are to be known.
        models: model directories whose tokenizers may be needed.

    Raises:
        UsageProblem: there is no such path.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        environments: Sequence[type[Environment[Any, Any, Any]]] = (),
        models: Sequence[Path] = (),
    ) -> None:
        self.library = Library(paths)
        self.cards = Cards(self.library)
        self.games = Games(environments)
        self.tokenizers = Tokenizers(models)

    def runs(self) -> dict[str, Any]:
        """The card of everything there is."""
        return {"runs": [self.cards.card(item) for item in self.library.items().values()]}

    def run(self, name: str) -> dict[str, Any]:
        """All that is shown of one run besides its traces.

        Raises:
            LookupError: there is none of this name.
            OSError, ConfigurationError: it cannot be read.
        """
        item = self.library.item(name)
        made: dict[str, Any] = {"card": self.cards.card(item)}
        if item.kind == "evaluation":
            index = self.library.index(item)
            made |= evaluation_details(self.cards.summary(item))
            made["notes"] += index.faults
            made |= {"histogram": histogram(index.rows), "counts": counts(index.rows), "traces": len(index.rows)}
            return made
        if item.kind == "training":
            made["stages"] = read_stages(item.folder, list(item.files))
        if item.certificate is not None:
            made["certificate"] = certificate(read_object(item.certificate) or {})
        return made

    def traces(self, name: str, query: Mapping[str, str]) -> dict[str, Any]:
        """A page of a run's traces: ``rows`` from ``offset`` on, of ``matching`` that the query selects.

        With ``around`` in the query, ``at`` is where that trace stands among them (None: it is not), and the page is
        the one that it is on.

        Raises:
            LookupError: there is no such run.
            ConfigurationError: the query asks for what there is not.
        """
        index = self.library.index(self.library.item(name, "evaluation"))
        rows = index.select(Selection.of(query))
        offset, at = _whole(query, "offset"), None
        if query.get("around"):
            around = _whole(query, "around")
            at = next((place for place, row in enumerate(rows) if row.n == around), None)
            offset = 0 if at is None else at // PAGE * PAGE
        shown = [row_json(row) for row in rows[offset : offset + PAGE]]
        return {"rows": shown, "offset": offset, "matching": len(rows), "of": len(index.rows), "at": at}

    def trace(self, name: str, n: int) -> dict[str, Any]:
        """One trace, as a reader wants it.

        Raises:
            LookupError: there is no such run, or trace.
        """
        item = self.library.item(name, "evaluation")
        index = self.library.index(item)
        if not 0 <= n < len(index.rows):
            raise LookupError(f"{name} has traces 0 to {len(index.rows) - 1}; there is no {n}")
        trace = index.trace(n)
        weighed = self.games.weigh(trace, self.cards.max_turns(item))
        tokens = self.tokenizers.turns(trace, self.games.environment(trace.environment))
        return {"n": n, **read_trace(trace, weighed, tokens)}

    def weigh(self, name: str) -> dict[str, Any]:
        """Weigh the moves of all traces of a run, where that can be done: how many there are of each kind.

        Raises:
            LookupError: there is no such run.
        """
        item = self.library.item(name, "evaluation")
        index, max_turns = self.library.index(item), self.cards.max_turns(item)
        waiting = [row.n for row in index.rows if row.blunders is None]
        known = len(waiting) < len(index.rows)
        for n, trace in zip(waiting, index.traces(waiting), strict=True):
            weighed = self.games.weigh(trace, max_turns)
            if not weighed.turns:
                if not known:
                    break  # what is no game is not gone through to its end
                continue
            known = True
            index.weighed(n, weighed.count("blunder"), weighed.count("missed_win"))
        rows = [row for row in index.rows if row.blunders is not None]
        return {
            "weighed": len(rows),
            "blunders": sum(row.blunders or 0 for row in rows),
            "missed": sum(row.missed or 0 for row in rows),
            "turns": sum(row.turns for row in rows),
            "counts": counts(index.rows),
        }

    def compare(self, names: Sequence[str]) -> dict[str, Any]:
        """Two runs, episode by episode.

        Raises:
            LookupError: there is no such run.
            ConfigurationError: it is not two that are named.
        """
        if len(names) != 2:
            raise ConfigurationError("two runs are compared with each other")
        items = [self.library.item(name, "evaluation") for name in names]
        rows, others = (self.library.index(item).rows for item in items)
        return compare(names, [item.files[0] for item in items], rows, others)


def row_json(row: Row) -> dict[str, Any]:
    """A row as the page reads it; the seed is a text, for a browser's numbers end at 53 bits."""
    made = {name: value for name, value in asdict(row).items() if name not in _UNSEEN}
    return {**made, "seed": str(row.seed), "bad": row.bad}


def _whole(query: Mapping[str, str], name: str) -> int:
    text = query.get(name) or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise ConfigurationError(f"{name}={text!r} is no whole number from 0 on")
    return int(text)
