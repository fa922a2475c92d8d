"""Emptying a folder that hostile code filled: deep, without rights, with links."""

from __future__ import annotations

import contextlib
import os
import stat

_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def empty(folder: int) -> None:
    """Remove everything in an open folder; follows no links, and no depth is too deep for it.

    Folders are taken apart from the top: what lies in one is moved to the outermost under a new name first.
    No process of the session may be running.
    """
    for _ in range(1_000_000):
        names = os.listdir(folder)
        if not names:
            return
        progress = False
        for name in names:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                os.unlink(name, dir_fd=folder)
                progress = True
                continue
            with contextlib.suppress(OSError):
                os.chmod(name, 0o700, dir_fd=folder)
            below = os.open(name, _FLAGS, dir_fd=folder)
            try:
                for inner in os.listdir(below):
                    kind = os.stat(inner, dir_fd=below, follow_symlinks=False).st_mode
                    if not stat.S_ISDIR(kind):
                        os.unlink(inner, dir_fd=below)
                        continue
                    with contextlib.suppress(OSError):
                        os.chmod(inner, 0o700, dir_fd=below)
                    aside = f".{os.urandom(12).hex()}"  # no name that is there, whoever chose those
                    os.rename(inner, aside, src_dir_fd=below, dst_dir_fd=folder)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=folder)
            progress = True
        if not progress:
            return


def empty_path(path: str) -> None:
    """Empty a folder by its path, if there is one."""
    try:
        folder = os.open(path, _FLAGS)
    except PermissionError:
        os.chmod(path, 0o700)
        folder = os.open(path, _FLAGS)
    except OSError:
        return
    try:
        with contextlib.suppress(OSError):
            os.fchmod(folder, 0o700)
        empty(folder)
    finally:
        os.close(folder)


def remove(path: str) -> None:
    """Remove a folder and all in it, as far as that can be done; nothing happens where there is none."""
    if path:
        with contextlib.suppress(OSError):
            empty_path(path)
            os.rmdir(path)
