"""Tasks that are each a number, and options of other libraries that are JSON: what imported environments say alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mcpgym import LazyTasks, Task, derive_seed
from mcpgym.errors import UnknownNameError


class Counts(Protocol):
    """A configuration that says how many tasks there are."""

    @property
    def train_tasks(self) -> int:
        """Tasks in the train split."""
        ...

    @property
    def test_tasks(self) -> int:
        """Tasks in the test split."""
        ...


def tasks_of(split: str, splits: Sequence[str], counts: Counts, make: Callable[[str, int], Task]) -> Sequence[Task]:
    """The tasks of ``split``, each made by ``make(split, index)`` when it is asked for.

    Raises:
        UnknownNameError: it is none of ``splits``.
    """
    if split not in splits:
        raise UnknownNameError("split", split, splits)
    count = counts.train_tasks if split == "train" else counts.test_tasks
    return LazyTasks(count, lambda index: make(split, index))


def task_number(split: str, index: int) -> int:
    """A task's number: even in ``train``, odd in ``test``."""
    return 2 * index + (split == "test")


def own_seed(environment: str, number: int, seed: int) -> int:
    """A library's seed for an episode of task ``number``: even where that is, odd where it is odd, so that no two
    splits share one."""
    return 2 * (derive_seed(environment, number, seed) % (1 << 30)) + number % 2


def json_object(value: str, example: str) -> dict[str, Any]:
    """What an option written in JSON says; nothing where it is blank.

    Raises:
        ValueError: it is no JSON, or no object; ``example`` shows one.
    """
    if not value.strip():
        return {}
    try:
        made = json.loads(value)
    except ValueError as error:
        raise ValueError(f"is no JSON: {error}") from None
    if not isinstance(made, dict):
        raise ValueError(f"must be a JSON object, as in {example}")
    return made
