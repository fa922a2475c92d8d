"""Asking an environment: its methods are plain or ``async``, and whatever they do, the server goes on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


async def asked(method: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What ``method`` of an environment answers, awaited where that is needed.

    One that exits (``sys.exit``, which would end the event loop and so the server) or cancels itself has failed like
    any other: that comes out as a ``RuntimeError``.
    """
    try:
        return await settle(method(*arguments, **named))
    except (SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # it is we who are cancelled
        raise RuntimeError(f"{type(error).__name__}: {error}") from error


async def settle(value: Any) -> Any:
    """``value``, awaited if it is awaitable: environments may define most methods plain or ``async``."""
    return await value if inspect.isawaitable(value) else value
