"""What was written reaches the disk within a second, and nobody waits for it."""

from __future__ import annotations

import os
import threading


class BackgroundSync:
    """Calls ``fsync`` on a file at most ``seconds`` after each :meth:`dirty`, in a thread of its own.

    Between two calls it rests for ``seconds``, so that a thousand lines a second cost one of them. Waiting for the disk
    lets go of Python's lock: the event loop goes on.

    Args:
        descriptor: the open file; it must stay open until :meth:`close`.
        seconds: how long a line may wait.
    """

    def __init__(self, descriptor: int, seconds: float) -> None:
        self._descriptor, self._seconds = descriptor, seconds
        self._dirty, self._closing = threading.Event(), threading.Event()
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._work, name="mcpgym-sync", daemon=True)
        self._thread.start()

    def dirty(self) -> None:
        """Something was written.

        Raises:
            OSError: the disk did not take what was written before.
        """
        if self._error is not None:
            raise self._error
        self._dirty.set()

    def close(self) -> None:
        """Wait until everything is on the disk; the thread ends.

        Raises:
            OSError: the disk did not take it.
        """
        self._closing.set()
        self._dirty.set()
        self._thread.join()
        if self._error is not None:
            raise self._error
        os.fsync(self._descriptor)

    def _work(self) -> None:
        while True:
            self._dirty.wait()
            if self._closing.wait(0):
                return
            self._dirty.clear()
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                self._error = error
                return
            if self._closing.wait(self._seconds):
                return
