"""Threads for tools that compute longer than the event loop may wait.

Daemon threads of our own: no thread can be stopped, and a tool that never returns must not keep the process from
ending.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

Job = tuple[Callable[[], Any], Callable[[Any, BaseException | None], None]]


class ToolThreads:
    """At most ``limit`` threads; further work waits for one to become free."""

    def __init__(self, limit: int) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._idle: list[_Worker] = []

    async def start(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Begin ``work`` once a thread is free. The future ends when it does; cancelling the future stops nothing."""
        await self._slots.acquire()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        worker = self._idle.pop() if self._idle else _Worker()

        def finished(result: Any, error: BaseException | None) -> None:
            self._slots.release()
            self._idle.append(worker)
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def report(result: Any, error: BaseException | None) -> None:
            loop.call_soon_threadsafe(finished, result, error)

        context = contextvars.copy_context()
        worker.jobs.put((lambda: context.run(work), report))
        return future

    def close(self) -> None:
        """Let the idle threads go."""
        while self._idle:
            self._idle.pop().jobs.put(None)


class _Worker:
    def __init__(self) -> None:
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        threading.Thread(target=self._run, name="mcpgym tool", daemon=True).start()

    def _run(self) -> None:
        while (job := self.jobs.get()) is not None:
            work, report = job
            result: Any = None
            problem: BaseException | None = None
            try:
                result = work()
            except StopIteration as error:  # a future cannot carry it
                problem = RuntimeError(f"StopIteration: {error}")
            except BaseException as error:
                problem = error
            try:
                report(result, problem)
            except RuntimeError:
                return  # the loop has closed: nobody will ask for this thread again
