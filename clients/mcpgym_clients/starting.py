"""Ctrl-C while the program is still starting.

Python loses a ``KeyboardInterrupt`` that is raised in a callback of its import system, and otherwise prints a traceback
of whatever module it was importing. Until a command's work begins there is nothing to put in order, so an interrupt
then ends the process at once.
"""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

from mcpgym_clients.failures import INTERRUPTED


def starting() -> None:
    """From here on an interrupt ends the process at once, unless whoever started us chose otherwise."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def work_begins() -> None:
    """From here on an interrupt is the command's own matter."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
