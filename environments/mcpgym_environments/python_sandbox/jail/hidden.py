"""Memory that processes hold and that no measure of their memory shows, as far as it can be told from /proc.

A shared mapping without a file keeps its pages as long as somebody has mapped it, even if nobody has them in his page
tables; and what was written to a pipe or a socket and not read is the kernel's. One process can hold no more of that
than its addresses and descriptors allow, but a session may have many.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

LOOK_SECONDS = 0.02
"""How long one look may take; the next goes on where it ended."""
PIPE = 1 << 16
SOCKET = 1 << 19
"""The most that waits in one pipe and in one socket, in bytes."""
_SHARED = b"/dev/zero (deleted)"


class Hidden:
    """What the processes of one session hold that way, added up over as many looks as it takes."""

    def __init__(self) -> None:
        self._left: list[int] = []
        self._mappings: dict[bytes, int] = {}
        self._queues: dict[str, int] = {}
        self._unknown = 0

    def look(self, processes: Iterable[int]) -> int:
        """The most that those seen so far can hold, in bytes; what they share is counted once."""
        if not self._left:
            self._left = list(processes)
            self._mappings.clear()
            self._queues.clear()
            self._unknown = 0
        until = time.monotonic() + LOOK_SECONDS
        while self._left and time.monotonic() < until:
            self._see(self._left.pop())
        return self._unknown + sum(self._mappings.values()) + sum(self._queues.values())

    def _see(self, process: int) -> None:
        folder = f"/proc/{process}"
        try:
            mapped = _text(f"{folder}/maps")
            for name in os.listdir(f"{folder}/fd"):
                self._queue(f"{folder}/fd/{name}")
        except (
            PermissionError
        ):  # it has become a program that nobody may read, or has ended (and then has no addresses)
            self._unknown += _addresses(folder)
            return
        except OSError:
            return
        for number, size in _sizes(mapped, _SHARED):
            self._mappings[number] = max(size, self._mappings.get(number, 0))

    def _queue(self, path: str) -> None:
        try:
            name = os.readlink(path)
        except FileNotFoundError:  # closed meanwhile
            return
        if name.startswith("pipe:"):
            self._queues[name] = PIPE
        elif name.startswith("socket:"):
            self._queues[name] = SOCKET


def mapped_without_name(process: int, device: int) -> dict[int, int]:
    """Files on a disk that the process has mapped and that no folder has any more: their numbers and sizes."""
    where = b" %02x:%02x " % (os.major(device), os.minor(device))
    found: dict[int, int] = {}
    try:
        mapped = _text(f"/proc/{process}/maps")
    except OSError:
        return found
    for number, size in _sizes(mapped, b" (deleted)", where):
        found[int(number)] = max(size, found.get(int(number), 0))
    return found


def _sizes(mapped: bytes, ending: bytes, holding: bytes = b" ") -> Iterator[tuple[bytes, int]]:
    """Number and extent of the files mapped (as /proc lists them) whose lines end and hold so."""
    if ending in mapped:
        for line in mapped.splitlines():
            if line.endswith(ending) and holding in line:
                place, _, offset, _, number, _ = line.split(None, 5)
                start, _, end = place.partition(b"-")
                yield number, int(offset, 16) + int(end, 16) - int(start, 16)


def _text(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def _addresses(folder: str) -> int:
    try:
        return int(_text(f"{folder}/stat").rpartition(b")")[2].split()[20])
    except (OSError, ValueError, IndexError):
        return 0
