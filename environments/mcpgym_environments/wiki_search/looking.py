"""Looking things up without holding up the server: in a few threads that all episodes share.

A library keeps an open connection for each thread that reads it. A thread for each of hundreds of episodes would mean
hundreds of connections, and be no faster: looking something up is work for a processor, not waiting.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 8
"""How many things are looked up at once, at most."""


async def apart(look: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What ``look`` gives, from one of the threads."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), lambda: look(*arguments, **named))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1), thread_name_prefix="wiki-search")


if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
    os.register_at_fork(after_in_child=_threads.cache_clear)
