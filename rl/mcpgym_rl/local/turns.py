"""The turns under way, at most one in each row: what they have sampled, and the next token of many at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcpgym_rl.local.backend import Backend, Ints, Logits
from mcpgym_rl.local.line import Request, Sampled
from mcpgym_rl.local.sampling import uniforms


class Turns:
    """What is known of the turns under way, an array for each thing; all arrays have the rows as their first axis.

    Args:
        backend: what computes.
        end_ids: tokens that end a turn.
    """

    def __init__(self, backend: Backend, end_ids: Iterable[int]) -> None:
        self.backend = backend
        self.running: dict[int, Request] = {}
        """By its row: the request of each turn under way."""
        self.ends = np.zeros(backend.vocabulary, bool)
        """Whether a token ends a turn, (vocabulary,)."""
        self.ends[[token for token in end_ids if token < backend.vocabulary]] = True
        self.starts = np.zeros(0, np.int64)
        """How many tokens each row holds, (rows,): its next one goes there."""
        self._last = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._limits = np.zeros(0, np.int64)
        self._seeds = np.zeros(0, np.uint64)
        self._heats = np.zeros(0, np.float64)
        self._min_p = np.zeros(0, np.float64)
        self._active = np.zeros(0, bool)
        self._said = np.zeros((0, 0), np.int64)
        self._logprobs = np.zeros((0, 0), np.float32)

    def grow(self, rows: int) -> None:
        """Room for turns in ``rows`` rows; it never gets less."""
        more = rows - len(self._last)
        if more > 0:
            for name in ("_last", "starts", "_counts", "_limits", "_seeds", "_heats", "_min_p", "_active"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros(more, old.dtype)]))
        self._widen(self._said.shape[1])

    def _widen(self, width: int) -> None:
        """Room for turns of ``width`` tokens: what was sampled has the shape (rows, width)."""
        for name in ("_said", "_logprobs"):
            old: NDArray[Any] = getattr(self, name)
            shape = len(self._last), max(width, old.shape[1])
            if shape == old.shape:
                continue
            new = np.zeros(shape, old.dtype)
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, name, new)

    def begin(self, requests: Sequence[Request], positions: int) -> Ints:
        """The turns of ``requests``, whose lines' rows hold all of their ids, begin; their rows, (requests,).

        Args:
            requests: turns that are asked for.
            positions: how many tokens a conversation may have.
        """
        self._widen(max(self._said.shape[1], max(min(request.limit, 64) for request in requests)))
        rows = np.array([request.line.row for request in requests])
        for request, row in zip(requests, rows.tolist(), strict=True):
            line = request.line
            line.cached = len(line.ids)
            self.running[row] = request
            self.starts[row] = len(line.ids)
            self._counts[row] = 0
            self._limits[row] = min(request.limit, positions - len(line.ids))
            self._seeds[row] = line.seed
            self._heats[row] = request.temperature
            self._min_p[row] = request.min_p
            self._active[row] = True
        return rows

    def under_way(self) -> Ints:
        """The rows in which a turn is under way, ascending."""
        return np.flatnonzero(self._active)

    def step(self, rows: Ints) -> Logits:
        """Append to each of ``rows`` the token that it sampled last; the scores after it, (rows, vocabulary)."""
        logits = self.backend.step(rows, self._last[rows], self.starts[rows])
        self.starts[rows] += 1
        return logits

    def draw(self, rows: Ints, logits: Logits) -> list[tuple[int, bool]]:
        """Draw the next token of ``rows`` from its scores, (rows, vocabulary).

        Returns:
            The rows whose turns are over with it, and of each whether it ended, or else was cut off.
        """
        counts = self._counts[rows]
        if int(counts.max()) >= self._said.shape[1]:
            self._widen(2 * self._said.shape[1])
        numbers = uniforms(self._seeds[rows], self.starts[rows])
        tokens, logprobs = self.backend.choose(logits, self._heats[rows], float(self._min_p[rows].max()), numbers)
        self._said[rows, counts] = tokens
        self._logprobs[rows, counts] = logprobs
        self._last[rows] = tokens
        counts += 1
        self._counts[rows] = counts
        ended = self.ends[tokens]
        over = np.flatnonzero(ended | (counts >= self._limits[rows]))
        return [(int(rows[place]), bool(ended[place])) for place in over.tolist()]

    def _spoken(self, row: int) -> tuple[list[int], list[float]]:
        """What the turn under way in a row has sampled: ids, and their log-probabilities."""
        count = int(self._counts[row])
        return self._said[row, :count].tolist(), self._logprobs[row, :count].tolist()

    def finish(self, row: int, ended: bool) -> tuple[Request, Sampled]:
        """The turn in a row is over, as :meth:`draw` said; what it was asked for with, and all that it sampled."""
        request = self.running[row]
        line = request.line
        ids, logprobs = self._spoken(row)
        line.cached = int(self.starts[row])
        line.ids.extend(ids)
        assert line.cached == len(line.ids) - 1, "the cache holds all but the last token, which comes with what follows"
        self.stop(row)
        return request, Sampled(request.ids + ids, request.logprobs + logprobs, "stop" if ended else "length")

    def interrupt(self, row: int) -> Request:
        """Take a row from its turn, which goes on, from the token it had come to, when its request has a row again."""
        request = self.running[row]
        ids, logprobs = self._spoken(row)
        request.line.ids.extend(ids)
        request.ids += ids
        request.logprobs += logprobs
        request.limit -= len(ids)
        self.stop(row)
        return request

    def stop(self, row: int) -> None:
        """No turn is under way in a row any more."""
        del self.running[row]
        self._active[row] = False
