"""Tasks: the immutable rows of an environment's data."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mcpgym.messages import Message

_SEPARATOR = "\x1f"


@dataclass(frozen=True, slots=True)
class Task:
    """One row of an environment's data.

    ``id`` is stable across runs and versions of the data; ``messages`` is the prompt the policy gets; ``info`` is
    hidden from it (answers, seeds, difficulty) and never leaves the server's control plane.
    """

    id: str
    split: str
    messages: Sequence[Message]
    info: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "info", MappingProxyType(dict(self.info)))


class LazyTasks(Sequence[Task]):
    """``count`` tasks, each made when it is asked for: ``make(index)`` must always give the same task for an index.

    The id of the task at ``index`` should be :func:`task_id`, so that a task is found by its id without a search.
    """

    def __init__(self, count: int, make: Callable[[int], Task]) -> None:
        if count < 0:
            raise ValueError(f"a split cannot have {count} tasks")
        self._count = count
        self._make = make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return [self._make(i) for i in range(*index.indices(self._count))]
        index = operator.index(index)
        position = index + self._count if index < 0 else index
        if not 0 <= position < self._count:
            raise IndexError(f"task {index} of {self._count}")
        return self._make(position)

    def __iter__(self) -> Iterator[Task]:
        return (self._make(i) for i in range(self._count))


def task_id(split: str, index: int) -> str:
    """The id of the task at ``index`` of ``split``: ``train-17``."""
    return f"{split}-{index}"


def find_task(tasks: Sequence[Task], split: str, wanted: str) -> Task | None:
    """The task of ``split`` whose id is ``wanted``, or None. Ids made by :func:`task_id` are found at once."""
    prefix, _, number = wanted.rpartition("-")
    if prefix == split and number.isdecimal() and number.isascii() and len(number) <= 12 and int(number) < len(tasks):
        task = tasks[int(number)]
        if task.id == wanted:
            return task
    if isinstance(tasks, LazyTasks) and len(tasks) and tasks[0].id == task_id(split, 0):
        return None
    return next((task for task in tasks if task.id == wanted), None)


def derive_seed(*parts: object) -> int:
    """A 64-bit seed that depends on every part and on nothing else (SHA-256 of their text).

    Use it wherever randomness is needed inside an episode: the same parts always give the same seed, on every
    machine and in every process, and no global generator is touched.

    Raises:
        TypeError: a part's text differs from process to process: a set, or an object that prints its address.
    """
    for part in parts:
        kind = type(part)
        addressed = kind.__repr__ is object.__repr__ and kind.__str__ is object.__str__
        if addressed or isinstance(part, (set, frozenset)):
            raise TypeError(f"a seed cannot be derived from a {kind.__name__}: its text is another in each process")
    # A separator inside a part is doubled: no two lists of parts make one text.
    text = _SEPARATOR.join(f"{type(part).__name__}:{str(part).replace(_SEPARATOR, _SEPARATOR * 2)}" for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
