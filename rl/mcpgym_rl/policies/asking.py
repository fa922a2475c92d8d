"""How an endpoint is asked: at most so many requests a minute, each turn within a deadline, and every token counted."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcpgym_rl.policy import Usage

if TYPE_CHECKING:
    from aiolimiter import AsyncLimiter

_MINUTE = 60.0


@dataclass(slots=True)
class Asking:
    """One turn that is being asked for, over all its requests: what they took, and how long they may take together."""

    usage: Usage = field(default_factory=Usage)
    clock: asyncio.Timeout | None = None

    @contextlib.asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """Let the block take so long, waiting for the rate limit not counted.

        Raises:
            TimeoutError: it took longer.
        """
        token = _ASKING.set(self)
        try:
            async with asyncio.timeout(seconds) as self.clock:
                yield
        finally:
            _ASKING.reset(token)

    async def wait(self, limiter: AsyncLimiter) -> None:
        """Wait until the limiter lets a request through; meanwhile the clock stands still."""
        clock, loop = self.clock, asyncio.get_running_loop()
        end = None if clock is None else clock.when()
        if clock is None or end is None:
            await limiter.acquire()
            return
        began = loop.time()
        clock.reschedule(None)
        try:
            await limiter.acquire()
        finally:
            if not clock.expired():
                clock.reschedule(end + loop.time() - began)


_ASKING: ContextVar[Asking | None] = ContextVar("the turn that is being asked for", default=None)


class Requests:
    """The requests to one endpoint, of all rollouts together; repeated ones count as any other.

    Args:
        per_minute: how many there may be in any minute, evenly spread; None for no limit.
    """

    def __init__(self, per_minute: float | None) -> None:
        self.per_minute = per_minute
        self._limiter: AsyncLimiter | None = None

    def hooks(self) -> dict[str, list[Any]]:
        """What an HTTP client is to call before and after each request."""
        return {"request": [self._before], "response": [self._after]}

    async def _before(self, request: Any) -> None:
        if self.per_minute is None:
            return
        if self._limiter is None:  # made in the loop that it is used in
            from aiolimiter import AsyncLimiter

            self._limiter = AsyncLimiter(1, _MINUTE / self.per_minute)
        await (_ASKING.get() or Asking()).wait(self._limiter)

    async def _after(self, response: Any) -> None:
        """Count what an answer that is an error took, where the endpoint says so: it may be asked again unseen."""
        asking = _ASKING.get()
        if asking is None or response.status_code < 400:
            return
        with contextlib.suppress(ValueError, RecursionError):
            body = json.loads(await response.aread())
            asking.usage += usage_of(body.get("usage") if isinstance(body, dict) else None)


def usage_of(given: Any) -> Usage:
    """What an endpoint says a request took, trusting nothing about its shape; nothing where it does not say.

    Chat completions count ``prompt_tokens`` and ``completion_tokens``, the Responses and the Messages API
    ``input_tokens`` and ``output_tokens``; those of the Messages API leave out what a cache was read for or given.

    Args:
        given: the ``usage`` of its answer, as an object or a mapping.
    """
    details = _field(given, "prompt_tokens_details") or _field(given, "input_tokens_details")
    read, stored = _field(given, "cache_read_input_tokens"), _field(given, "cache_creation_input_tokens")
    cached = _field(details, "cached_tokens") if read is None else read
    prompt = _count(_field(given, "prompt_tokens")) or _count(_field(given, "input_tokens"))
    return Usage(
        prompt + _count(read) + _count(stored),
        _count(_field(given, "completion_tokens")) or _count(_field(given, "output_tokens")),
        _count(cached) if isinstance(cached, int) else None,
    )


def _field(given: Any, name: str) -> Any:
    return given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
