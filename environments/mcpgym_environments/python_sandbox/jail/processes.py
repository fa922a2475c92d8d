"""The processes of a session, as init sees them: which there are, what they use, stopping and ending them.

In a pid namespace of its own (init is process 1) these are all processes; elsewhere they are init's descendants, which
it keeps even when their parents end. Where /proc is hidden, only the worker is known.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcpgym_environments.python_sandbox.jail.hidden import Hidden, mapped_without_name

if sys.platform != "win32":
    import resource

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
LOOK_SECONDS = 0.03
"""How long one look at what processes share may take; one process may take longer."""
_PR_SET_CHILD_SUBREAPER = 36
FREEZE_SECONDS = 1.0
"""How long stopping a session's processes may take, however busy they make the machine."""
_LISTS_CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()


@dataclass(frozen=True, slots=True)
class Usage:
    """What the session's processes use: seconds of processor time, bytes of resident memory, threads."""

    cpu: float
    memory: int
    threads: int


class Processes:
    """The processes of one session.

    Args:
        namespace: whether init is process 1 of a pid namespace of its own.
        lone: whether the worker can start no processes.
    """

    def __init__(self, namespace: bool, lone: bool = False) -> None:
        self._namespace = namespace
        self._lone = lone
        self._proc = _stat(os.getpid()) is not None
        self._shared = 0
        self._uncounted: list[int] = []  # processes whose memory is still to be looked at, and that of the others
        self._counted = 0
        self._hidden = Hidden()
        self._own = -1  # the worker's /proc/<pid>/stat, held open: it is read before every call
        if not namespace and sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    # ------------------------------------------------------------------ which

    def all(self, worker: int | None) -> list[int]:
        """Every process of the session but init."""
        if self._lone or not self._proc:
            return [] if worker is None else [worker]
        if self._namespace:
            return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]
        return list(descendants(os.getpid()))

    # ------------------------------------------------------------------ what they use

    def mark(self, worker: int) -> float:
        """The processor time used so far, to be taken from later measures: while only the worker is alive."""
        if self._own < 0:
            return self.usage(worker).cpu
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            fields = _fields(os.pread(self._own, 1024, 0))
        except OSError:  # it has ended, and will be found to have
            fields = [b"0"] * 15
        return reaped.ru_utime + reaped.ru_stime + sum(map(int, fields[11:15])) / TICKS

    def begin(self, worker: int) -> None:
        """Watch a new worker; what it has in memory it shares with init, and so with all that it forks."""
        if self._own >= 0:
            os.close(self._own)
            self._own = -1
        fields = _stat(worker) if self._proc else None
        self._shared = 0 if fields is None else int(fields[21]) * PAGE
        if fields is not None:
            self._own = os.open(f"/proc/{worker}/stat", os.O_RDONLY | os.O_CLOEXEC)

    def usage(self, worker: int) -> Usage:
        """What the processes use together; of ended ones that somebody waited for, their processor time.

        Parents are looked at before their children, so that no time is counted twice when one ends meanwhile.
        """
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = reaped.ru_utime + reaped.ru_stime
        if not self._proc:
            with contextlib.suppress(OSError):
                cpu += time.clock_gettime((~worker << 3) | 2)  # the clock of another process, as the kernel numbers it
            return Usage(cpu, 0, 1)
        ticks = memory = threads = 0
        for pid in sorted(self.all(worker)):
            fields = _stat(pid)
            if fields is not None:
                ticks += sum(map(int, fields[11:15]))
                threads += int(fields[17])
                memory += max(0, int(fields[21]) * PAGE - self._shared)
        return Usage(cpu + ticks / TICKS, memory, threads)

    def crowded(self, worker: int, most: int) -> bool:
        """Whether they hold more than ``most`` bytes of memory, what they share counted once.

        The kernel walks through all that a process holds to tell, and waits for one that is forking. So one look takes
        a bounded time, and the next goes on where it ended. Where it cannot be told, the answer is yes.
        """
        if not self._uncounted:
            self._uncounted, self._counted = self.all(worker), 0
        until = time.monotonic() + LOOK_SECONDS
        while self._uncounted and time.monotonic() < until:
            try:
                text = Path(f"/proc/{self._uncounted.pop()}/smaps_rollup").read_text("ascii")
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ESRCH):  # it ended
                    continue
                self._uncounted = []
                return True
            for line in text.splitlines():
                if line.startswith("Pss:"):
                    self._counted += int(line.split()[1]) * 1024
            if self._counted > most:
                self._uncounted = []
                return True
        return False

    def hidden(self, worker: int) -> int:
        """Bytes of memory that they hold and that their sizes do not show; of one alone its limits take care."""
        pids = self.all(worker) if self._proc else []
        return self._hidden.look(pids) if len(pids) > 1 else 0

    def nameless(self, worker: int, device: int) -> int:
        """Bytes on a disk of files that the processes hold open or mapped and that no folder has any more."""
        total = 0
        seen: set[int] = set()
        for pid in self.all(worker) if self._proc else ():
            with contextlib.suppress(OSError):
                for name in os.listdir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(OSError):
                        found = os.stat(f"/proc/{pid}/fd/{name}")
                        if found.st_dev == device and not found.st_nlink and found.st_ino not in seen:
                            seen.add(found.st_ino)
                            total += found.st_blocks * 512
            total += sum(size for number, size in mapped_without_name(pid, device).items() if number not in seen)
        return total

    # ------------------------------------------------------------------ stopping and ending

    def freeze(self, worker: int) -> int | None:
        """Stop the worker and kill every other process.

        What has been sent a SIGSTOP runs no more of its code and starts no more processes (the kernel begins the fork
        anew once it is awake), so nobody need wait until it has stopped. A signal to "all" comes only where there are
        others: for that the kernel looks at every process of the machine, those of all other sessions among them.

        Returns:
            How many others there were; None when they cannot all be killed, or the worker has ended.
        """
        deadline = 0.0
        killed: set[int] = set()
        with contextlib.suppress(OSError):
            os.kill(worker, signal.SIGSTOP)
        while True:
            others = [pid for pid in self.all(worker) if pid != worker and pid not in killed]
            if not others:
                break
            self._signal_all(signal.SIGSTOP, worker)
            for pid in others:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            killed.update(others)
            now = time.monotonic()
            deadline = deadline or now + FREEZE_SECONDS
            if now > deadline:
                return None
        while any(map(_runs, killed)):  # in a system call, which may wake the worker before it ends
            if time.monotonic() > deadline:
                return None
            time.sleep(0.0005)
        if killed:
            self._signal_all(signal.SIGSTOP, worker)
        if killed or not self._proc:
            reap(worker)
        return None if _has_ended(worker) else len(killed)

    def _signal_all(self, number: int, worker: int) -> None:
        if self._namespace:
            with contextlib.suppress(OSError):
                os.kill(-1, number)
            return
        for pid in {worker, *self.all(worker)}:
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def end_all(self, worker: int | None) -> None:
        """Kill every process of the session; returns when none is left, or after a second of trying."""
        deadline = time.monotonic() + 1.0
        while True:
            pids = set(self.all(worker)) | (set() if worker is None else {worker})
            if self._namespace:
                with contextlib.suppress(OSError):
                    os.kill(-1, signal.SIGKILL)
            for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first: what is stopped starts no more
                for pid in pids:
                    with contextlib.suppress(OSError):
                        os.kill(pid, number)
            if reap(None) == 0 and not self.all(None):
                return
            left = deadline - time.monotonic()
            if left <= 0:
                return
            _wait_for_child(min(left, 0.005))
            worker = None


def descendants(pid: int) -> Iterator[int]:
    """The processes that ``pid`` (of one thread, if it is this one) started and those that they did; needs /proc."""
    parents = None if _LISTS_CHILDREN else _parents()
    seen = {pid}
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        found = _children(parent) if parents is None else [one for one, of in parents.items() if of == parent]
        for child in found:
            if child not in seen:
                seen.add(child)
                waiting.append(child)
                yield child


def end_tree(pid: int) -> None:
    """Kill a process and all that it started, as far as /proc shows them; from outside, without waiting."""
    known: set[int] = set()
    with contextlib.suppress(OSError):
        for _ in range(20):
            found = {pid, *descendants(pid)} - known
            if not found:
                break
            known |= found
            for one in found:  # stopped first: what is stopped starts no more
                with contextlib.suppress(OSError):
                    os.kill(one, signal.SIGSTOP)
    for one in known or {pid}:
        with contextlib.suppress(OSError):
            os.kill(one, signal.SIGKILL)


def end_user(user: int) -> None:
    """Kill every process of a throw-away user, from outside; needs /proc, and a user id that nobody else has."""
    own = f"\nUid:\t{user}\t".encode()
    for _ in range(100):
        texts = {int(name): _text(f"/proc/{name}/status") for name in os.listdir("/proc") if name.isdigit()}
        found = [pid for pid, text in texts.items() if own in text and b"\nState:\tZ" not in text]
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if not found:
            return
        time.sleep(0.005)


def reap(keep: int | None) -> int:
    """Take the status of every ended child but ``keep``; gives how many children are left, at least (0 or 1)."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return 0
        if found is None or found.si_pid == keep:
            return 1
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, found.si_pid, os.WEXITED | os.WNOHANG)


def _has_ended(pid: int) -> bool:
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _wait_for_child(seconds: float) -> None:
    """Until something happens to a child (SIGCHLD must be blocked), or for so long."""
    if hasattr(signal, "sigtimedwait"):
        signal.sigtimedwait({signal.SIGCHLD}, seconds)
    else:
        time.sleep(min(seconds, 0.002))


def _stat(pid: int) -> list[bytes] | None:
    """The fields of /proc/<pid>/stat after the name."""
    fields = _fields(_text(f"/proc/{pid}/stat"))
    return fields if len(fields) > 21 else None


def _runs(pid: int) -> bool:
    """Whether a process or one of its threads has not ended."""
    fields = _stat(pid)
    return fields is not None and (fields[0] not in (b"Z", b"X") or int(fields[17]) > 1)


def _fields(text: bytes) -> list[bytes]:
    return text[text.rfind(b")") + 2 :].split()


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        threads = [str(pid)] if pid == os.getpid() else os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        found += map(int, _text(f"/proc/{pid}/task/{thread}/children").split())
    return found


def _text(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    parts = []
    try:
        while part := os.read(descriptor, 65_536):
            parts.append(part)
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _stat(int(name))
            if fields is not None:
                found[int(name)] = int(fields[1])
    return found
