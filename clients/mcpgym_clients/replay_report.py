"""What ``mcpgym replay`` found, for people and for programs."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from mcpgym_clients.console import clean, one_line
from mcpgym_rl.replay import CONFIGURATION, Difference, DifferenceKind, Replayed
from mcpgym_rl.traces import Trace

SCHEMA = "mcpgym.replay/1"
SHOWN = 5
"""How many traces that differ are shown in full."""
BEFORE = 4
"""How many messages before a difference are shown."""
LINES = 12
"""How many lines of a text are shown on either side."""
WIDTH = 240
"""How many characters of a line."""


@dataclass(slots=True)
class Results:
    """What has been found so far. ``places`` are the file of each trace and its place there."""

    places: Sequence[tuple[Path, int]]
    score_tolerance: float = 0.0
    environments: dict[str, dict[str, Any]] = field(default_factory=dict)
    traces: int = 0
    observations: int = 0
    scores: int = 0
    unscored: int = 0
    unopened: int = 0
    differing: int = 0
    shown: list[Replayed] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    configurations: Counter[str] = field(default_factory=Counter)

    def add(self, one: Replayed) -> None:
        """Count one replay."""
        self.traces += 1
        self.observations += one.observations
        trace = one.recorded
        if one.replayed is None and one.equal:
            self.unopened += 1
        elif trace.score is None:
            self.unscored += 1
        elif {item.kind for item in one.differences} <= {DifferenceKind.TOOLS, DifferenceKind.SCORE}:
            self.scores += 1  # where a text differed, it did not come to that
        self.configurations.update(note for note in one.notes if note.startswith(CONFIGURATION))
        if not one.equal:
            self.differing += 1
            if len(self.shown) < SHOWN:
                self.shown.append(one)
        self.rows.append(self._row(one))

    def _row(self, one: Replayed) -> dict[str, Any]:
        trace, (path, place) = one.recorded, self.places[one.number]
        return {
            "file": str(path),
            "index": place,
            "environment": trace.environment,
            "task": trace.task,
            "seed": trace.seed,
            "equal": one.equal,
            "observations": one.observations,
            "notes": list(one.notes),
            "differences": [
                {
                    "kind": str(item.kind),
                    "where": item.where,
                    "message": item.message,
                    "call": item.call,
                    "recorded": item.recorded,
                    "replayed": item.replayed,
                }
                for item in one.differences
            ],
        }

    def as_json(self) -> dict[str, Any]:
        """All of it, as JSON values."""
        return {
            "schema": SCHEMA,
            "equal": not self.differing,
            "traces": self.traces,
            "differing": self.differing,
            "observations": self.observations,
            "scores": self.scores,
            "unscored": self.unscored,
            "unopened": self.unopened,
            "score_tolerance": self.score_tolerance,
            "environments": self.environments,
            "results": self.rows,
        }

    def render(self) -> Group:
        """All of it, for a terminal."""
        parts: list[Any] = []
        for one in self.shown:
            parts += [*_differing(one, *self.places[one.number]), Text()]
        if more := self.differing - len(self.shown):
            parts.append(Text(f"… and {_count(more, 'trace')} more that differ; --json FILE has them all\n", "dim"))
        what = f"{_count(self.observations, 'observation')} and {_count(self.scores, 'score')}"
        how = "to the letter" if not self.score_tolerance else f"scores to within {self.score_tolerance:g}"
        if any(not item["reproducible"] for item in self.environments.values()):
            how = f"by the rules of their environments{'' if not self.score_tolerance else ', ' + how}"
        if self.differing:
            verdict = f"{self.differing:,} of {_count(self.traces, 'trace')} differ"
            parts.append(Text.assemble(("✗ ", "red"), (verdict, "bold"), (f"  {what} were compared", "dim")))
        else:
            verdict = f"{_count(self.traces, 'trace')} replay{'s' if self.traces == 1 else ''} equal"
            parts.append(Text.assemble(("✓ ", "green"), (verdict, "bold"), (f"  {what}, {how}", "dim")))
        for name, item in self.environments.items():
            parts.append(Text(f"  {clean(name)} {clean(str(item['replayed']))}", "dim"))
        for note, count in self.configurations.most_common(SHOWN):
            parts.append(Text(f"  {one_line(note)} ({_count(count, 'trace')})", "yellow"))
        if self.unscored:
            parts.append(Text(f"  {self.unscored:,} had no score: compared as far as they go", "yellow"))
        if self.unopened:
            parts.append(Text(f"  {self.unopened:,} never opened an episode: nothing to compare", "yellow"))
        return Group(*parts)


def _differing(one: Replayed, path: Path, place: int) -> Iterator[Any]:
    trace = one.recorded
    yield Text.assemble(
        ("✗ ", "red"),
        (one_line(f"{path}, trace {place}: {trace.environment} {trace.task}, seed {trace.seed}"), "bold"),
        (f"  {one_line(trace.policy)}", "dim"),
    )
    for note in one.notes:
        yield Padding(Text(one_line(note), "yellow"), (0, 0, 0, 2), expand=False)
    for item in one.differences:
        yield Padding(Group(*_difference(trace, item)), (0, 0, 0, 2), expand=False)


def _difference(trace: Trace, item: Difference) -> Iterator[Any]:
    yield Text.assemble((f"{item.kind} differs", "bold red"), f"  {one_line(item.where)}")
    if item.message is not None and item.kind != DifferenceKind.PROMPT:
        before = [message for message in trace.messages[: item.message] if message["role"] != "system"]
        if len(before) > BEFORE:
            yield Text(f"  … {_count(len(before) - BEFORE, 'message')} before", "dim")
        for message in before[-BEFORE:]:
            yield Padding(Text(_brief(message), "dim"), (0, 0, 0, 2), expand=False)
    for line in unified(item.recorded, item.replayed):
        yield Text(f"  {line}", {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], ""))


def _brief(message: Any) -> str:
    """A message, in a few lines."""
    text = [message["content"]] if message["content"] else []
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        function = function if isinstance(function, dict) else {}
        text.append(f"→ {function.get('name')} {function.get('arguments')}")
    role = f"{message['role']}{' (error)' if message.get('is_error') else ''}"
    lines = clean("\n".join(map(str, text))).split("\n")
    kept = [_cut(line) for line in lines[:LINES]] + ([f"… {len(lines) - LINES} lines"] if len(lines) > LINES else [])
    return f"{role}: " + "\n  ".join(kept)


def unified(recorded: str, replayed: str) -> list[str]:
    """A unified diff of two texts that differ, from three lines before the first difference on, harmless to a terminal.

    Where two lines look alike (another kind of space, a control character), they are written out.
    """
    old, new = recorded.split("\n"), replayed.split("\n")
    first = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(first - 3, 0)
    sides = [side[start : first + LINES] for side in (old, new)]
    if [_seen(line) for line in sides[0]] == [_seen(line) for line in sides[1]]:
        sides = [[line.encode("unicode_escape").decode("ascii").replace(" ", "␠") for line in side] for side in sides]
    column = 0
    if first < min(len(old), len(new)):
        column = next((at for at, (a, b) in enumerate(zip(old[first], new[first], strict=False)) if a != b), 0)
    left, right = ([_cut(clean(line), column) for line in side] for side in sides)
    lines = list(difflib.unified_diff(left, right, "recorded", "replayed", lineterm="", n=3))
    more = max(len(old), len(new)) - first - LINES
    return [*lines, f"… {more} more lines"] if more > 0 else lines


def _seen(line: str) -> str:
    return " ".join(clean(line).split())


def _cut(line: str, column: int = 0) -> str:
    """``line``, at most ``WIDTH`` characters of it, those around ``column``."""
    if len(line) <= WIDTH:
        return line
    start = max(column - WIDTH // 2, 0)
    return f"{'…' if start else ''}{line[start : start + WIDTH]}{'…' if start + WIDTH < len(line) else ''}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
