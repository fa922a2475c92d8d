"""Twins: calls that are one call sent again, and get one answer. Clients retry."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from mcpgym.calls import CallResult

MAX_KEYS = 1_024
"""How many idempotency keys an episode remembers."""


What = tuple[str, str]
"""A call's name and the fingerprint of its arguments."""


@dataclass(slots=True, eq=False)
class InFlight:
    """A call that is being answered. ``keys`` are the idempotency keys it came with; ``runs_on``: a thread is at work,
    which nothing can stop, so it is left to finish even when nobody waits for it."""

    what: What
    keys: set[str]
    task: asyncio.Task[CallResult] | None = None
    waiters: int = 0
    runs_on: bool = False

    @property
    def abandoned(self) -> bool:
        """Whether it was told to stop, and so answers nobody new."""
        return self.task is not None and self.task.cancelling() > 0


_KEY_TAKEN = CallResult("this idempotency key belongs to another call; use a new one", is_error=True)


@dataclass(slots=True, eq=False)
class Twins:
    """The calls of one episode that are being answered, and the answers that idempotency keys have got."""

    flights: list[InFlight] = field(default_factory=list)
    _answers: OrderedDict[str, tuple[What, CallResult]] = field(default_factory=OrderedDict)

    def twin(self, what: What, key: str | None) -> InFlight | None:
        """The call in flight that answers this one too."""
        for flight in self.flights:
            if flight.what == what and not flight.abandoned and (key is None or not flight.keys or key in flight.keys):
                return flight
        return None

    def remembered(self, key: str, what: What) -> CallResult | None:
        """What the key's first call was answered; a refusal where that was another call."""
        if key in self._answers:
            before, answer = self._answers[key]
            return answer if before == what else _KEY_TAKEN
        if any(key in flight.keys and flight.what != what for flight in self.flights):
            return _KEY_TAKEN
        return None

    def remember(self, keys: Iterable[str], what: What, result: CallResult) -> CallResult:
        """Keep ``result`` as the answer of ``keys``, and give it back."""
        for key in keys:
            self._answers[key] = (what, result)
            if len(self._answers) > MAX_KEYS:
                self._answers.popitem(last=False)
        return result
