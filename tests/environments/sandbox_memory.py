"""How much memory the processes of a cell hold together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil


def group() -> Path | None:
    """This cell's memory group, if it has one of version 1."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if kinds == "memory" and "mcpgym-tests" in path:
            return Path("/sys/fs/cgroup/memory") / path.lstrip("/")
    return None


def rows() -> dict[str, int]:
    """What the memory group says; nothing where there is none."""
    found = group()
    if found is None:
        return {}
    return {name: int(value) for name, value in map(str.split, (found / "memory.stat").read_text().splitlines())}


def held() -> int:
    """Bytes that this cell holds: anonymous and shared memory and the kernel's for it."""
    if told := rows():
        kernel = 0
        with contextlib.suppress(OSError):
            kernel = int((group() or Path()).joinpath("memory.kmem.usage_in_bytes").read_text())
        return told["total_rss"] + told["total_shmem"] + kernel
    found = psutil.process_iter(["memory_info"])
    return sum(process.info["memory_info"].rss for process in found if process.info["memory_info"])


def shared() -> int:
    """Bytes of shared memory and of files in memory."""
    told = rows()
    return told["total_shmem"] if told else int(psutil.virtual_memory().shared)


@dataclass
class Most:
    """The most memory that this cell held, and what ran then."""

    bytes: int = 0
    during: tuple[str, ...] = ()

    def look(self, running: Iterable[str]) -> None:
        """Look now."""
        if (now := held()) > self.bytes:
            self.bytes, self.during = now, tuple(running)
