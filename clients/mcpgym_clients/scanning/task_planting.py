"""Canaries in what tasks hide: each text and number in ``info`` (and in a task's own fields) becomes one, if it can."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mcpgym.tasks import LazyTasks, Task
from mcpgym_clients.scanning.canaries import Canaries, Kind, Value

HIDING = re.compile(r"answer|solution|secret|seed|target|label|gold|expected|truth|hidden|password|key|salt", re.I)
"""Names of what is hidden on purpose."""
_VISIBLE = frozenset({"id", "split", "messages"})
LARGE = 1 << 31
"""A whole number from here on is a seed or a hash, whatever its name; a smaller one may be a size, and stays."""

Path = tuple[str | int, ...]


def leaves(task: Task) -> Iterator[tuple[Path, Value]]:
    """What ``task`` hides, with where it is: ``info``, and fields of a task class of its own."""
    for field in dataclasses.fields(task):
        if field.name not in _VISIBLE:
            yield from _leaves(getattr(task, field.name), (field.name,))


def _leaves(value: object, path: Path) -> Iterator[tuple[Path, Value]]:
    if len(path) > 8:
        return
    if isinstance(value, Mapping):
        for key, child in value.items():
            yield from _leaves(child, (*path, key if isinstance(key, (str, int)) else str(key)))
    elif isinstance(value, (list, tuple)):
        for place, child in enumerate(value[:50]):
            yield from _leaves(child, (*path, place))
    elif isinstance(value, (str, int, float, bytes)):
        yield path, value


def kind_of_place(path: Path) -> str:
    """A place's name without its positions: what is true of one is taken to be true of all."""
    return ".".join("*" if isinstance(part, int) else part for part in path)


def canary_for(canaries: Canaries, task: str, path: Path, value: Value) -> Value | None:
    """What is planted for ``value``; None where a canary would be another kind of thing.

    A text becomes another text; a whole number one of 62 bits, if it is large or its name says that it is an answer or
    a seed; a fraction one that is a hair beside it.
    """
    where = (task, *path)
    if isinstance(value, str):
        return canaries.text(*where)
    if isinstance(value, bytes):
        return canaries.text(*where).encode()
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return canaries.integer(*where) if is_named_secret(path) or abs(value) >= LARGE else None
    if value in (0.0, 1.0) or abs(value) > 1e12:
        return None
    return round(value * (1 - 1e-3 * canaries.share(*where)), 15)


class TaskPlanting:
    """Plants tasks. ``kept`` names the kinds of places that stay as they are, for the environment needs them so, and
    ``allowed`` those whose values may be seen.
    """

    def __init__(self, canaries: Canaries) -> None:
        self.canaries = canaries
        self.kept: set[str] = set()
        self.allowed: set[str] = set()

    def planted(self, task: Task) -> Task:
        """``task`` with canaries in it."""
        changes: dict[str, Any] = {}
        for path, value in leaves(task):
            if kind_of_place(path) in self.kept or _is_told(task, path, value):
                continue
            canary = canary_for(self.canaries, task.id, path, value)
            if canary is not None:
                name = str(path[0])
                changes[name] = _changed(changes.get(name, getattr(task, name)), path[1:], canary)
        try:
            return dataclasses.replace(task, **changes) if changes else task
        except (TypeError, ValueError):  # a task class that cannot be copied
            return task

    def tasks(self, rows: Sequence[Task]) -> Sequence[Task]:
        """All of ``rows``, planted when they are asked for."""
        return _lazy(len(rows), lambda index: self.planted(rows[index]))

    def watch(self, task: Task) -> None:
        """Look for what ``task`` (planted) hides, from now on. What its prompt says anyway is no secret."""
        shown = "\n".join(message["content"] for message in task.messages)
        for path, value in leaves(task):
            planted = kind_of_place(path) not in self.kept
            distinctive = len(str(value)) >= (12 if isinstance(value, str) else 7)
            told = _is_told(task, path, value) or (not planted and str(value) in shown)
            if kind_of_place(path) in self.allowed or not distinctive or told:
                continue
            self.canaries.watch(Kind.INFO, f"{kind_of_place(path)} of a task", value)

    def unwatchable(self, task: Task) -> set[str]:
        """The places in ``task`` (planted) whose values are too short or too plain to be looked for."""
        return {
            kind_of_place(path)
            for path, value in leaves(task)
            if len(str(value)) < (12 if isinstance(value, str) else 7)
        }


def is_named_secret(path: Path) -> bool:
    """Whether a place's name says that what it holds is hidden on purpose."""
    return any(isinstance(part, str) and HIDING.search(part) for part in path)


def _is_told(task: Task, path: Path, value: Value) -> bool:
    """Whether a task's prompt says it anyway, and no name of it says that it is hidden: a question, say."""
    text = str(value)
    return len(text) >= 7 and not is_named_secret(path) and any(text in message["content"] for message in task.messages)


def _lazy(count: int, make: Callable[[int], Task]) -> LazyTasks:
    return LazyTasks(count, make)


def _changed(value: Any, path: Path, new: Value) -> Any:
    """A copy of ``value`` with ``new`` at ``path``."""
    if not path:
        return new
    first, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {**value, first: _changed(value[first], rest, new)}
    items = list(value)
    items[int(first)] = _changed(items[int(first)], rest, new)
    return tuple(items) if isinstance(value, tuple) else items
