"""What a server's processes hold: memory, file descriptors, threads, children; and how long they took, load aside.

Read from the system, never touched.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

MOST_QUEUED = 60.0
"""Seconds in a queue that are forgiven at most: however busy a machine is, an examination ends."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one process holds. ``memory`` is resident bytes, ``cpu`` seconds of CPU so far."""

    memory: int
    descriptors: int
    threads: int
    cpu: float


@dataclass(frozen=True, slots=True)
class Held:
    """What a process and its descendants hold: each its share, by process id and when it was started."""

    shares: Mapping[tuple[int, float], Share]

    @property
    def memory(self) -> int:
        """Resident bytes of all together."""
        return sum(share.memory for share in self.shares.values())

    @property
    def descriptors(self) -> int:
        """Open files and sockets of all together."""
        return sum(share.descriptors for share in self.shares.values())

    @property
    def threads(self) -> int:
        """Threads of all together."""
        return sum(share.threads for share in self.shares.values())

    @property
    def children(self) -> int:
        """How many descendants there are."""
        return max(0, len(self.shares) - 1)

    @property
    def cpu(self) -> float:
        """Seconds of CPU that all have used so far."""
        return sum(share.cpu for share in self.shares.values())

    def of(self, processes: Container[tuple[int, float]]) -> Held:
        """What these processes hold of it."""
        return Held({which: share for which, share in self.shares.items() if which in processes})


def held(pid: int) -> Held | None:
    """What the process and its descendants hold now; None when it is gone or may not be seen."""
    try:
        root = psutil.Process(pid)
        family = [root, *root.children(recursive=True)]
    except psutil.Error:
        return None
    shares = {}
    for process in family:
        try:
            with process.oneshot():
                times = process.cpu_times()
                shares[process.pid, process.create_time()] = Share(
                    process.memory_info().rss,
                    process.num_fds() if hasattr(process, "num_fds") else process.num_handles(),
                    process.num_threads(),
                    times.user + times.system,
                )
        except psutil.Error:
            if process is root:
                return None
    return Held(shares)


def descendants(pid: int) -> list[int]:
    """The process ids of all that the process has started and that still runs."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not collected yet does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def queued(pid: int) -> float:
    """Seconds in which the process could have run and had no processor, so far; its thread that waited longest.

    Linux says it (``/proc/PID/task/TID/schedstat``); 0 where nobody does, and of a process that is gone.
    """
    longest = 0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            longest = max(longest, int((thread / "schedstat").read_text().split()[1]))
    except (OSError, ValueError, IndexError):
        pass  # another system, or it has just ended
    return longest / 1e9


class Stopwatch:
    """How long processes take to do something, without the time in which they had no processor.

    A machine that is busy with other things makes no server worse; of the processes the one that queued longest counts.
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._started = time.monotonic()
        self._before = {pid: queued(pid) for pid in pids}
        self.queued = 0.0
        """Seconds in the queue since the start, when last looked at."""

    def look(self) -> None:
        """See how long they have queued: of a process that has ended this cannot be learnt later."""
        now = max((queued(pid) - before for pid, before in self._before.items()), default=0.0)
        self.queued = min(max(self.queued, now), MOST_QUEUED)

    @property
    def seconds(self) -> float:
        """Seconds since the start, less those in the queue."""
        return max(time.monotonic() - self._started - self.queued, 0.0)

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Whether ``done`` becomes true within so many seconds of their own."""
        while not done():
            self.look()
            if self.seconds > seconds:
                return done()
            await asyncio.sleep(0.02)
        return True

    def aside(self) -> str:
        """What is to be said of the seconds in the queue; nothing where they were few."""
        return f" (and {self.queued:.1f} s without a processor, which are not counted)" if self.queued >= 0.5 else ""


def listening_process(host: str, port: int) -> int | str:
    """The process on this machine that listens at ``host`` and ``port``, or why it is not known."""
    if not _is_here(host):
        return f"{host} is another machine, whose processes cannot be seen from here"
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return "this user may not see which process listens there"
    found = [
        item.pid
        for item in connections
        if item.status == psutil.CONN_LISTEN and item.laddr and item.laddr.port == port and item.pid
    ]
    if not found:
        return "the process that listens there belongs to another user, or is in a container"
    # Workers share a socket with the process that started them: take the eldest.
    families = {pid: set(descendants(pid)) for pid in found}
    return int(max(sorted(found), key=lambda pid: len(families[pid] & set(found))))


def _is_here(host: str) -> bool:
    try:
        addresses = {item[4][0] for item in socket.getaddrinfo(host, None)}
        own = {address.address.split("%")[0] for group in psutil.net_if_addrs().values() for address in group}
        return any(ipaddress.ip_address(str(each).split("%")[0]).is_loopback or each in own for each in addresses)
    except (OSError, ValueError):
        return False
