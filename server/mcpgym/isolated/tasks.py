"""Tasks of an environment that plays elsewhere: how many is known, each is asked for when it is needed."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpgym.tasks import Task

PAGE = 16
"""Tasks that are asked for at once."""
PAGES = 64
"""Pages that are kept."""


@dataclass(frozen=True, slots=True)
class IsolatedTask(Task):
    """A task and its place in its split. ``sent`` is what it hides as it came from there."""

    index: int = -1
    sent: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> dict[str, Any]:
        """How it is named there; with what it hides, where that was changed here."""
        changed = {} if dict(self.info) == dict(self.sent) else {"info": dict(self.info)}
        return {"split": self.split, "index": self.index, "id": self.id, **changed}


class IsolatedTasks(Sequence[IsolatedTask]):
    """One split. ``ask`` gives the tasks from one place to another, as JSON."""

    def __init__(self, split: str, count: int, ask: Callable[[str, int, int], list[dict[str, Any]]]) -> None:
        self._split, self._count, self._ask = split, count, ask
        self._pages: OrderedDict[int, list[IsolatedTask]] = OrderedDict()

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return [self._at(place) for place in range(*index.indices(self._count))]
        index = operator.index(index)
        place = index + self._count if index < 0 else index
        if not 0 <= place < self._count:
            raise IndexError(f"task {index} of {self._count}")
        return self._at(place)

    def __iter__(self) -> Iterator[IsolatedTask]:
        return (self._at(place) for place in range(self._count))

    def _at(self, place: int) -> IsolatedTask:
        page, within = divmod(place, PAGE)
        if page not in self._pages:
            start = page * PAGE
            self._pages[page] = [
                IsolatedTask(row["id"], self._split, row["messages"], row["info"], start + offset, row["info"])
                for offset, row in enumerate(self._ask(self._split, start, start + PAGE))
            ]
            if len(self._pages) > PAGES:
                self._pages.popitem(last=False)
        self._pages.move_to_end(page)
        return self._pages[page][within]
