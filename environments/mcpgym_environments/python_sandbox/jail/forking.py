"""A fork for processes of one thread, which leaves out what Python does in the child for the sake of other threads.

``os.fork`` has every module that asked for it put its locks in order in the child, and seeds ``random`` from the
system. In a process that has had one thread since it began there is nothing to put in order, and each of those steps
writes to pages that the child shared until then: a tenth of what a session holds. So the library's own ``fork`` is
called, without letting go of the interpreter's lock. All a child must be told is the number of its only thread.
"""

from __future__ import annotations

import os
import sys
import threading
from _thread import get_native_id
from collections.abc import Callable

_fork: Callable[[], int] | None = None
if sys.platform == "linux":
    try:
        import ctypes

        _fork = ctypes.PyDLL(None, use_errno=True).fork
        _number = ctypes.get_errno
    except (ImportError, OSError, AttributeError):  # an interpreter without ctypes, or linked statically
        _fork = None
_main = vars(threading.main_thread())


def fork() -> int:
    """As ``os.fork``, in a process that has one thread only, the main thread.

    Raises:
        OSError: the kernel gives no more processes.
    """
    if _fork is None:
        return os.fork()
    child = _fork()
    if child < 0:
        raise OSError(_number(), f"fork: {os.strerror(_number())}")
    if child == 0 and "_native_id" in _main:
        _main["_native_id"] = get_native_id()
    return child
