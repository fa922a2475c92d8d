"""The private folders of one episode of an agent: made before it, removed after it with all that is in them.

Whoever made them holds a lock on them, which the operating system frees with the process: so the next run knows those
that a killed one left.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mcpgym_clients.agents.contract import Workplace

logger = logging.getLogger(__name__)

PREFIX = "mcpgym-agent-"


@contextlib.contextmanager
def workplace() -> Iterator[Workplace]:
    """Folders that only this user can open; removed on leaving."""
    root, lock = _own()
    try:
        made = Workplace(root)
        for folder in (made.home, made.work, made.temporary):
            folder.mkdir(mode=0o700)
        yield made
    finally:
        _remove(root)
        os.close(lock)


def remove_abandoned() -> None:
    """Remove the folders that killed runs of this user have left."""
    for root in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # it is another's, or was removed meanwhile
            if root.is_symlink() or root.stat().st_uid != os.getuid():
                continue
            lock = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if _locked(lock):
                    _remove(root)
            finally:
                os.close(lock)


def _own() -> tuple[Path, int]:
    """A new folder, and the descriptor by which it is locked."""
    while True:
        root = Path(tempfile.mkdtemp(prefix=PREFIX))
        with contextlib.suppress(FileNotFoundError):  # another run took it for an abandoned one, before it was locked
            lock = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
            _locked(lock)
            if root.exists():
                return root, lock
            os.close(lock)


def _locked(handle: int) -> bool:
    """Lock a folder, unless another process holds it or its file system knows no locks; whether it is locked."""
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(root: Path) -> None:
    """Remove a folder that :func:`tempfile.mkdtemp` made, whatever permissions an agent left in it. Follows no link."""
    shutil.rmtree(root, ignore_errors=True)
    if not root.exists():
        return
    for folder, _, _ in os.walk(root):  # from the top, so that each is open before it is looked into
        with contextlib.suppress(OSError):
            os.chmod(folder, stat.S_IRWXU, follow_symlinks=os.chmod not in os.supports_follow_symlinks)  # noqa: PTH101
    shutil.rmtree(root, ignore_errors=True)
    if root.exists():
        logger.warning("%s, what an agent left behind, could not be removed", root)


def variables_of(place: Workplace) -> dict[str, str]:
    """The variables that say where a program's own files belong."""
    home = str(place.home)
    return {
        "HOME": home,
        "USERPROFILE": home,
        "TMPDIR": str(place.temporary),
        "TEMP": str(place.temporary),
        "TMP": str(place.temporary),
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_CACHE_HOME": f"{home}/.cache",
        "XDG_STATE_HOME": f"{home}/.local/state",
    }
