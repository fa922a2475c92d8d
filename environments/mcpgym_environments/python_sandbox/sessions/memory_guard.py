"""The last defence of a machine's memory: when hardly any is left, the session that holds most is ended.

Each session has limits of its own; a hundred that stay within theirs can still fill a machine, and the kernel would
then end whatever it likes, the server among it. One guard looks after all pools of a process.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

logger = logging.getLogger(__name__)

LEAST_AVAILABLE = 0.10
"""The share of memory that must stay available."""
WORTH_BYTES = 64 << 20
"""A session that holds less is not what fills the machine, unless all together hold their tenth of it."""
PAUSE_SECONDS = 0.5
"""How long the kernel has to free what one session held before another is looked for."""
MOST_PROCESSES = 4_096

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")


class Guarded(Protocol):
    """What the guard may end: a pool's side of one session."""

    @property
    def process(self) -> int | None:
        """Its first process on this machine."""
        ...

    def sacrifice(self, why: str, held: int) -> None:
        """End it; it held so many bytes."""
        ...


class Flock(Protocol):
    """What has sessions: a pool."""

    def guarded(self) -> Iterable[Guarded]:
        """Those that live now."""
        ...


class MemoryGuard:
    """Looks when it is told to, at most twice a second, and ends one session at a time."""

    def __init__(self) -> None:
        self.killed = 0
        """How many sessions it has ended."""
        self._flocks: weakref.WeakSet[Flock] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._next = 0.0

    def watch(self, flock: Flock) -> None:
        """Look after the sessions of ``flock`` as long as it exists."""
        with self._lock:
            self._flocks.add(flock)

    def look(self) -> bool:
        """End the largest session if memory is short; whether it did."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if time.monotonic() < self._next:
                return False
            self._next = time.monotonic() + PAUSE_SECONDS
            memory = available()
            if memory is None or memory[0] >= LEAST_AVAILABLE * memory[1]:
                return False
            held = [
                (resident(one.process), one)
                for flock in list(self._flocks)
                for one in flock.guarded()
                if one.process is not None
            ]
        finally:
            self._lock.release()
        if not held:
            return False
        most, victim = max(held, key=lambda pair: pair[0])
        together = sum(size for size, _ in held)
        if most < WORTH_BYTES and together < LEAST_AVAILABLE * memory[1]:
            return False  # others fill the machine
        self.killed += 1
        left, whole = memory[0] >> 20, memory[1] >> 20
        why = f"this machine had {left} of {whole} MB of memory left, and it held most, {most >> 20} MB"
        logger.warning("a sandbox session was ended: %s", why)
        victim.sacrifice(why, most)
        return True


GUARD = MemoryGuard()
"""The one of this process."""


def available() -> tuple[int, int] | None:
    """How many bytes of memory this process's machine or container has left, and has in all; None where unknown."""
    found = [pair for pair in (_machine(), *_groups()) if pair is not None and pair[1] > 0]
    return min(found, key=lambda pair: pair[0] / pair[1]) if found else None


def resident(process: int | None) -> int:
    """Bytes of anonymous memory that a process and all below it hold; 0 where it is gone.

    Pages that they share with what they were forked from count in each: that is the same for all sessions.
    """
    if process is None:
        return 0
    total, waiting, seen = 0, [process], 0
    while waiting and seen < MOST_PROCESSES:
        pid = waiting.pop()
        seen += 1
        with contextlib.suppress(OSError, ValueError, IndexError):
            sizes = (_PROC / str(pid) / "statm").read_text().split()
            total += max(0, int(sizes[1]) - int(sizes[2])) * _PAGE
        with contextlib.suppress(OSError, ValueError):
            for thread in (_PROC / str(pid) / "task").iterdir():
                waiting += map(int, (thread / "children").read_text().split())
    return total


def _page() -> int:
    try:
        import resource

        return resource.getpagesize()
    except ImportError:
        return 4_096


_PAGE = _page()


def _machine() -> tuple[int, int] | None:
    try:
        lines = (_PROC / "meminfo").read_text().splitlines()
        sizes = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
        return sizes["MemAvailable"], sizes["MemTotal"]
    except (OSError, ValueError, KeyError, IndexError):
        return None


def _groups() -> Iterator[tuple[int, int]]:
    """What the control groups of this process leave it, where they limit it: version 2, and version 1."""
    try:
        lines = (_PROC / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        relative = path.lstrip("/")
        if number == "0" and not controllers:
            folders = [_CGROUPS / relative, _CGROUPS]
            names = "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            folders = [_CGROUPS / "memory" / relative, _CGROUPS / "memory"]
            names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        for folder in dict.fromkeys(folders):
            with contextlib.suppress(OSError, ValueError):
                most, used = (int((folder / name).read_text()) for name in names[:2])
                if most < 1 << 50:
                    yield max(0, min(most - used + _stat(folder, names[2]), most)), most


def _stat(folder: Path, name: str) -> int:
    """A number of a control group's statistics: files that are only cached are given back when asked for."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.split()[0] == name:
                return int(line.split()[1])
    return 0
