"""All that lies in a folder, seen while hostile code works in it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
"""How a folder is opened, and nothing but a folder."""
DEEPEST = 512
"""So many folders may lie in each other: each has to be open, and each costs the kernel more than the one above."""


class TooDeep(Exception):
    """Folders lie deeper in each other than anybody needs."""


def walked(top: int) -> Iterator[tuple[int, str, os.stat_result]]:
    """Everything under an open folder, which is closed afterwards: its own folder, its name, its facts; no links.

    Raises:
        TooDeep: there is more further down.
    """
    above = [(top, iter(_names(top)))]
    try:
        while above:
            folder, names = above[-1]
            for name in names:
                try:
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                except OSError:
                    continue
                yield folder, name, found
                if stat.S_ISDIR(found.st_mode) and (below := _entered(folder, name)) >= 0:
                    above.append((below, iter(_names(below))))
                    if len(above) > DEEPEST:
                        raise TooDeep
                    break
            else:
                os.close(above.pop()[0])
    finally:
        for folder, _ in above:
            os.close(folder)


def _names(folder: int) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _entered(above: int, name: str) -> int:
    """A descriptor of a folder whatever its mode; -1 where there is none."""
    with contextlib.suppress(OSError):
        return os.open(name, FOLDER, dir_fd=above)
    with contextlib.suppress(OSError, AttributeError):
        found = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            os.chmod(f"/proc/self/fd/{found}", 0o700)  # this very folder, and not what may by now have its name
            return os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        finally:
            os.close(found)
    return -1
