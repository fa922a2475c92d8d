"""The folder of a front's sockets: it is this user's alone, and goes with the front, however that ends."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mcpgym.control_plane.address import LONGEST_PATH

_PREFIX = "mcpgym-fleet-"
_LOCK = "front.lock"
_NEW_SECONDS = 60.0
"""A folder that is younger may be of a front that has not locked it yet."""


@contextlib.contextmanager
def folder_of_sockets() -> Iterator[Path]:
    """A new folder; those that killed fronts left are removed."""
    import fcntl

    longest = len(tempfile.gettempdir()) + len(f"/{_PREFIX}12345678/w1000000.control")
    base = Path(tempfile.gettempdir() if longest <= LONGEST_PATH else "/tmp")
    _sweep(base)
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=base) as made, (Path(made) / _LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until this process ends: no child inherits it
        yield Path(made)


def _sweep(base: Path) -> None:
    """Remove the folders of fronts that are no more: nobody holds their locks."""
    import fcntl

    for left in base.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            found = left.lstat()
            if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode):
                continue
            if time.time() - found.st_mtime < _NEW_SECONDS:
                continue
            with (left / _LOCK).open() as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for path in left.iterdir():
                    if path.name == _LOCK or stat.S_ISSOCK(path.lstat().st_mode):
                        path.unlink()
                left.rmdir()
