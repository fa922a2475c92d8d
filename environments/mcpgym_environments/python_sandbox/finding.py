"""Finding a problem again by its text: what the expert knows that nobody else does."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping

from mcpgym_environments.python_sandbox.problems.catalogue import Catalogue
from mcpgym_environments.python_sandbox.problems.problem import Problem

SPLITS = ("test", "train")
MOST = 30_000
"""How many problems of each split are looked through for one that nobody has opened here."""


class Finder:
    """The problems of a catalogue by their text: those that were opened here at once, the others by making them again.

    Args:
        catalogue: makes the problems.
        counts: how many tasks each split has.
    """

    def __init__(self, catalogue: Catalogue, counts: Mapping[str, int]) -> None:
        self._catalogue = catalogue
        self._known: dict[bytes, tuple[str, int]] = {}
        self._lock = threading.Lock()
        self._rest = ((split, index) for index in range(MOST) for split in SPLITS if index < counts.get(split, 0))

    def remember(self, split: str, index: int, problem: Problem) -> None:
        """A problem that is opened here will be found at once."""
        self._known[_digest(problem.text)] = split, index

    def find(self, text: str) -> Problem | None:
        """The problem whose text is ``text``; None where there is none of the first ``MOST`` of a split."""
        wanted = _digest(text)
        if wanted not in self._known:
            with self._lock:
                for found in self._look_on():
                    if found == wanted:
                        break
        place = self._known.get(wanted)
        return None if place is None else self._catalogue.problem(*place)

    def _look_on(self) -> Iterator[bytes]:
        for split, index in self._rest:
            digest = _digest(self._catalogue.problem(split, index).text)
            self._known.setdefault(digest, (split, index))
            yield digest


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]
