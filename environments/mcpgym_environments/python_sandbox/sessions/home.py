"""An event loop in a thread of its own: the home of a pool, whatever loops its sessions are used from."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class Home:
    """Begins with the first thing that is asked of it, and ends with :meth:`stop`; then it takes nothing more.

    Args:
        name: the thread's.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopped = False

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine there, from any thread.

        Raises:
            RuntimeError: it has stopped.
        """
        try:
            return asyncio.run_coroutine_threadsafe(work, self._running())
        except RuntimeError:
            work.close()
            raise

    def call(self, function: Callable[[], object]) -> bool:
        """Call a function there soon, from any thread; False where it has stopped."""
        try:
            self._running().call_soon_threadsafe(function)
        except RuntimeError:
            return False
        return True

    def stop(self) -> None:
        """Cancel what runs there and end the thread; waits for it unless it is called there."""
        with self._lock:
            self._stopped = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        try:
            loop.call_soon_threadsafe(loop.stop)
        except RuntimeError:
            return
        if thread is not threading.current_thread():
            thread.join(5.0)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._stopped:
                raise RuntimeError("it has stopped")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_live, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop


def _live(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=3.0))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
