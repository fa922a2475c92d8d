"""A lock on a run's folder, so that two processes never write one run."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from mcpgym.errors import ConfigurationError

LOCK = ".lock"
_HELD = frozenset({errno.EAGAIN, errno.EACCES, errno.EDEADLK})


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold ``folder``, which exists, for as long as the block takes; the operating system frees it with the process.

    The file ``.lock`` in it is removed at the end; one that a killed process left holds nobody up. Where the file
    system knows no locks, nothing is held.

    Raises:
        ConfigurationError: another process holds it.
    """
    handle = _take(folder)
    try:
        yield
    finally:
        if handle is not None:
            with contextlib.suppress(OSError):  # elsewhere an open file cannot be removed: it stays, and is harmless
                (folder / LOCK).unlink()
            os.close(handle)


def _take(folder: Path) -> int | None:
    path = folder / LOCK
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        try:
            _lock(handle)
            if _is_still(path, handle):
                return handle
        except OSError as error:
            os.close(handle)
            if error.errno in _HELD:
                raise ConfigurationError(
                    f"another process is at work in {folder}: wait until it ends, or stop it"
                ) from None
            return None  # this file system knows no locks
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # whoever held it has just removed it: what we locked is no longer there for others


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        return
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
