"""One conversation of a local model: its ids, and how it asks the engine for turns."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from mcpgym_rl.local.sampling import derived
from mcpgym_rl.policy import ContextFull, PolicyError

if TYPE_CHECKING:
    from mcpgym_rl.local.engine import Engine


@dataclass(frozen=True, slots=True)
class Sampled:
    """What one turn sampled: ids, their log-probabilities, and whether it ended or was cut off."""

    ids: list[int]
    logprobs: list[float]
    finish: Literal["stop", "length"]


@dataclass(eq=False, slots=True)
class Request:
    """A turn that is asked for or under way. ``ids`` and ``logprobs``: what it sampled before its row was taken."""

    line: Line
    limit: int
    temperature: float
    min_p: float
    future: asyncio.Future[Sampled]
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class Line:
    """One conversation. ``ids`` is all of it, sampled or not; only :meth:`generate` adds to it."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self._engine = engine
        self.seed = seed & 0xFFFFFFFFFFFFFFFF
        self.ids: list[int] = []
        self.row: int | None = None
        self.cached = 0
        self._source: tuple[Line, int] | None = None
        self._copies: list[Line] = []
        self._forks = 0
        self._request: Request | None = None
        self._expected = False

    async def generate(self, chunk: Sequence[int], *, limit: int, temperature: float, min_p: float = 0.0) -> Sampled:
        """Append ``chunk``, then sample until an end token or ``limit`` tokens.

        Raises:
            ContextFull: there would be no room for a single token.
            PolicyError: the model is broken.
        """
        if self._request is not None:
            raise PolicyError("this conversation is being continued already")
        if len(self.ids) + len(chunk) >= self._engine.positions:
            raise ContextFull(
                f"the conversation has {len(self.ids) + len(chunk)} tokens; the model takes {self._engine.positions}"
            )
        if not chunk and not self.ids:
            raise PolicyError("a conversation cannot begin with nothing")
        self.ids.extend(chunk)
        return await self._engine.serve(self, limit, temperature, min_p)

    def fork(self) -> Line:
        """A copy that stands where this one stands and goes its own way, with random numbers of its own."""
        self._forks += 1
        made = self._engine.open(derived(self.seed, self._forks))
        made.ids = list(self.ids)
        made._source = (self, self.cached) if self.row is not None else self._source
        if made._source is not None:
            made._source[0]._copies.append(made)
        return made

    def expect(self, expected: bool) -> None:
        """Say whether this line is about to ask for a turn: the engine waits a little for those who are."""
        if expected != self._expected:
            self._expected = expected
            (self._engine.expected.add if expected else self._engine.expected.discard)(self)

    def close(self) -> None:
        """Give the row back."""
        self.expect(False)
        self._engine.release(self)
