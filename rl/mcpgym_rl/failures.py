"""What went wrong, in a sentence; and cleaning up that a cancellation cannot interrupt."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

ValueT = TypeVar("ValueT")

CLEAN_UP_SECONDS = 5.0
"""How long closing one thing (an episode, a connection) may take once its rollout is over."""


def leaves(error: BaseException | None) -> list[BaseException]:
    """The exceptions inside an ExceptionGroup, however deeply grouped; any other exception alone."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in leaves(inner)]
    return [] if error is None else [error]


def explain(error: BaseException) -> str:
    """One sentence for ``error``: groups unwrapped, repetitions dropped, a bare class named."""
    sentences = dict.fromkeys(str(leaf).strip() or type(leaf).__name__ for leaf in leaves(error))
    return "; ".join(sentences)


async def uninterrupted(coroutine: Coroutine[Any, Any, ValueT], seconds: float | None = CLEAN_UP_SECONDS) -> ValueT:
    """Await ``coroutine`` to its end even while this task is being cancelled; the cancellation follows it.

    Once cancelled, it waits for :data:`CLEAN_UP_SECONDS` at most.

    Raises:
        TimeoutError: it took longer than ``seconds`` and was cancelled itself.
    """
    work = asyncio.ensure_future(coroutine)  # a task at once: one that is cancelled before it begins is closed
    inner = asyncio.ensure_future(asyncio.wait_for(work, seconds))
    cancelled: asyncio.CancelledError | None = None
    while not inner.done():
        try:
            await asyncio.wait([inner])
        except asyncio.CancelledError as error:
            if cancelled is None:
                asyncio.get_running_loop().call_later(CLEAN_UP_SECONDS, inner.cancel)
            cancelled = error
    if cancelled is None:
        return inner.result()
    if not inner.cancelled():
        inner.exception()  # seen, so that nothing is logged about it
    raise cancelled
