"""Prompts that stay computed: episodes begin with the same few, and each of those is appended once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from mcpgym_rl.local.backend import Backend, Logits

OPENINGS = 256
"""How many prompts are kept computed: episodes begin with the same few."""
OPENING_BYTES = 64 << 20


class Openings:
    """By the ids of a prompt: the keys and values of its tokens, and the scores after it, (1, vocabulary).

    Args:
        backend: whose rows they are saved from and loaded into.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._computed: OrderedDict[tuple[int, ...], tuple[Any, Logits]] = OrderedDict()
        self._bytes = 0

    def __contains__(self, ids: tuple[int, ...]) -> bool:
        return ids in self._computed

    def keep(self, ids: tuple[int, ...], row: int, logits: Logits, place: int) -> None:
        """Keep ``ids``, which ``row`` holds; the scores after them are ``logits[place]``. :meth:`trim` afterwards."""
        self._computed[ids] = self.backend.save(row, len(ids)), self.backend.take(logits, [place])
        self._bytes += self.backend.row_bytes(len(ids))

    def load(self, ids: tuple[int, ...], rows: Sequence[int]) -> Logits:
        """Give ``rows`` the tokens ``ids``; the scores after them, (rows, vocabulary)."""
        saved, logits = self._computed[ids]
        self._computed.move_to_end(ids)
        for row in rows:
            self.backend.load(row, saved)
        return self.backend.take(logits, [0] * len(rows))

    def trim(self) -> None:
        """Drop those that were not asked for longest, where there are too many."""
        while len(self._computed) > OPENINGS or (self._bytes > OPENING_BYTES and self._computed):
            ids, _ = self._computed.popitem(last=False)
            self._bytes -= self.backend.row_bytes(len(ids))

    def clear(self) -> None:
        """Drop all."""
        self._computed.clear()
        self._bytes = 0
