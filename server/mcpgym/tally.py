"""What is counted of one environment's calls: how many, how many failed, how long they took."""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections import deque

BOUNDS = tuple(base * 10.0**power for power in range(-6, 3) for base in (1.0, 2.0, 5.0))[3:-2]
"""Upper bounds of the buckets of durations, in seconds: 10 µs, 20 µs, 50 µs, … 100 s."""
_BATCH = 4096


class Tally:
    """The calls of one environment. ``recent`` are the last durations in milliseconds, the newest last.

    Durations are put into buckets a few thousand at a time: one at a time would cost a call more than all else here.
    """

    __slots__ = ("_counts", "_folded", "_lock", "_total", "calls", "errors", "least", "live", "most", "recent")

    def __init__(self) -> None:
        self.calls = self.errors = self.live = 0
        self.least, self.most = math.inf, 0.0
        self.recent: deque[float] = deque(maxlen=_BATCH)
        self._counts = [0] * (len(BOUNDS) + 1)
        self._total = 0.0
        self._folded = 0
        self._lock = threading.Lock()

    def add(self, milliseconds: float, is_error: bool) -> None:
        """Count one call."""
        self.recent.append(milliseconds)
        self.calls = calls = self.calls + 1
        if is_error:
            self.errors += 1
        if not calls % _BATCH:
            self.snapshot()

    def snapshot(self) -> tuple[list[int], float]:
        """The calls in each bucket (the last is above all bounds), and the sum of their seconds. Any thread may ask.

        ``least`` and ``most`` are then those of all calls, in seconds.
        """
        with self._lock:
            calls = self.calls
            if new := calls - self._folded:
                seconds = sorted(value / 1e3 for value in list(self.recent)[-new:])
                below = 0
                for place, bound in enumerate(BOUNDS):
                    upto = bisect_right(seconds, bound)
                    self._counts[place] += upto - below
                    below = upto
                self._counts[-1] += len(seconds) - below
                self._total += sum(seconds)
                self.least, self.most = min(self.least, seconds[0]), max(self.most, seconds[-1])
                self._folded = calls
            return list(self._counts), self._total
