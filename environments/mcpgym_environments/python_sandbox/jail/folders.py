"""The folder of a fork server without namespaces: the file tree and each session's files, gone when their owner is.

Whoever owns a folder holds a lock on it for life, which the kernel lets go of however that life ends; so what a killed
owner left is known, and the next one to start removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import tempfile

PREFIX = "mcpgym-fork-server-"
LOCK = "lock"
SPARE = 64 << 20
"""Bytes that must be free beside the tree, for the sessions' files."""


def make(size: int, others: bool) -> tuple[str, int]:
    """A new folder on a disk with room for ``size`` bytes from which programs may run, and the lock that keeps it.

    Args:
        size: bytes.
        others: whether other users (the sessions of root) must be able to pass all folders above it.

    Raises:
        OSError: there is none.
    """
    places = dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"))
    for place in places:
        try:
            facts = os.statvfs(place)
            if facts.f_flag & os.ST_NOEXEC or facts.f_bavail * facts.f_frsize < size + SPARE:
                continue
            if others and not _passable(os.path.realpath(place)):
                continue
            sweep(place)
            folder = os.path.realpath(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        except OSError:
            continue
        lock = os.open(f"{folder}/new", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(f"{folder}/new", f"{folder}/{LOCK}")  # it appears locked: nobody can come first
        os.chmod(folder, 0o711)  # sessions pass through it, and cannot list it
        os.mkdir(f"{folder}/sessions", 0o711)
        os.mkdir(f"{folder}/tree", 0o755)
        return folder, lock
    raise OSError(
        errno.ENOSPC, f"none of {', '.join(places)} has {(size + SPARE) >> 20} MB free where any program may be run"
    )


def _passable(place: str) -> bool:
    while place != "/":
        if not os.stat(place).st_mode & 0o001:
            return False
        place = os.path.dirname(place)
    return True


def sweep(place: str) -> None:
    """Remove the folders in ``place`` whose owners are gone."""
    for name in os.listdir(place):
        folder = os.path.join(place, name)
        if not name.startswith(PREFIX) or not _ours(folder):
            continue
        with contextlib.suppress(OSError):
            lock = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder)
            finally:
                os.close(lock)


def _ours(folder: str) -> bool:
    with contextlib.suppress(OSError):
        facts = os.lstat(folder)
        return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
    return False


def remove(folder: str) -> None:
    """Remove a folder and all in it, however deep and whatever its modes; follows no link.

    Whoever wrote in it must be gone. Folders inside folders are moved up before they are emptied, so that neither depth
    nor the length of a path matters.

    Raises:
        OSError: something could not be removed.
    """
    top = _opened(folder, None)
    try:
        while names := os.listdir(top):
            for name in names:
                if not _unlinked(top, name):
                    _empty(top, name)
                    os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(folder)


def _opened(name: str, at: int | None) -> int:
    """A descriptor of a folder, which may be read, searched and written whatever its mode was."""
    found = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    try:
        os.chmod(f"/proc/self/fd/{found}", 0o700)  # this very folder, and not what may by now have its name
        return os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(found)


def _unlinked(at: int, name: str) -> bool:
    """Whether it was no folder; then it is gone."""
    if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=at)
    return True


def _empty(top: int, name: str) -> None:
    inside = _opened(name, top)
    try:
        for inner in os.listdir(inside):
            if not _unlinked(inside, inner):
                os.close(_opened(inner, inside))  # moving a folder changes an entry in it
                aside = f".{os.urandom(12).hex()}"  # no name that is there, whoever chose those
                os.rename(inner, aside, src_dir_fd=inside, dst_dir_fd=top)
    finally:
        os.close(inside)
