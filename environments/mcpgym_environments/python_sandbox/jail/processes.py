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
from dataclasses import dataclass
from pathlib import Path

from mcpgym_environments.python_sandbox.jail.hidden import Hidden, mapped_without_name
from mcpgym_environments.python_sandbox.jail.table import descendants, fields_of, reap, runs, stat_of

if sys.platform != "win32":
    import resource

PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
LOOK_SECONDS = 0.03
"""How long one look at what processes share may take; one process may take longer."""
_PR_SET_CHILD_SUBREAPER = 36
FREEZE_SECONDS = 1.0
"""How long stopping a session's processes may take, however busy they make the machine."""
STANDS_LOOKS = 4
"""How often a worker is looked at before it is sent another stop; in between a millisecond at most goes by."""
_REUSED = 300
"""From here on numbers are given anew when the kernel has come to their end; those below it gives only once."""
_SIGSTOP = int(signal.SIGSTOP)
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


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
        births: with a namespace, a descriptor of a ``/proc/loadavg``, whose last word is the number that the reader's
            pid namespace gave last; -1 for none.
    """

    def __init__(self, namespace: bool, lone: bool = False, births: int = -1) -> None:
        self._namespace = namespace
        self._lone = lone
        self._proc = stat_of(os.getpid()) is not None
        self._shared = 0
        self._uncounted: list[int] = []  # processes whose memory is still to be looked at, and that of the others
        self._counted = 0
        self._hidden = Hidden()
        self._births = births if namespace else -1
        self._own = -1  # the worker's /proc/<pid>/stat, held open: it is read before a call
        self._settled = False
        self._last = 0  # the number that was given to a process last, when only the worker was alive
        self._marked = 0.0  # the processor time that all had used then, less what the worker itself had
        if not namespace and _prctl is not None:
            _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

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
        if self._settled:  # nothing has ended and left its time to the worker
            try:
                return self._marked + time.clock_gettime(_clock(worker))
            except OSError:  # it has ended, and will be found to have
                return self._marked
        if self._own < 0:
            return self.usage(worker).cpu
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            fields = fields_of(os.pread(self._own, 1024, 0))
        except OSError:
            fields = [b"0"] * 15
        return reaped.ru_utime + reaped.ru_stime + sum(map(int, fields[11:15])) / TICKS

    def born(self) -> int:
        """The last number that was given to a process or thread of the namespace; 0 where it cannot be told."""
        if self._births < 0:
            return 0
        try:
            text = os.pread(self._births, 128, 0)
            return int(text[text.rfind(b" ") :])
        except (OSError, ValueError):
            return 0

    def begin(self, worker: int, before: int) -> None:
        """Watch a new worker; what it has in memory it shares with init, and so with all that it forks.

        Args:
            worker: its number.
            before: what :meth:`born` said before it was forked.
        """
        if self._own >= 0:
            os.close(self._own)
            self._own = -1
        fields = stat_of(worker) if self._proc else None
        self._shared = 0 if fields is None else int(fields[21]) * PAGE
        if fields is not None:
            self._own = os.open(f"/proc/{worker}/stat", os.O_RDONLY | os.O_CLOEXEC)
        if not before or not before < worker == self.born():
            self._births = -1  # it does not tell the truth here
        self._settle(worker)

    def _settle(self, worker: int) -> None:
        """Only the worker is alive, stopped or at its beginning: remember how it is now."""
        self._last = self.born()
        self._settled = False
        if not self._lone and not 0 < self._last < _REUSED:
            return
        try:
            own = time.clock_gettime(_clock(worker))
        except OSError:
            return
        self._marked = self.usage(worker).cpu - own
        self._settled = True

    def _is_settled(self) -> bool:
        """Whether nothing was started since the worker was known to be alone.

        What is stopped starts nothing more, and numbers below ``_REUSED`` are given only once: if the one that was
        given last is still the same, no process and no thread has been started, whoever wants it to look so.
        """
        return self._settled and (self._lone or self._last == self.born())

    def usage(self, worker: int) -> Usage:
        """What the processes use together; of ended ones that somebody waited for, their processor time.

        Parents are looked at before their children, so that no time is counted twice when one ends meanwhile.
        """
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = reaped.ru_utime + reaped.ru_stime
        if not self._proc:
            with contextlib.suppress(OSError):
                cpu += time.clock_gettime(_clock(worker))
            return Usage(cpu, 0, 1)
        ticks = memory = threads = 0
        for pid in sorted(self.all(worker)):
            fields = stat_of(pid)
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

        A stop that was sent is none yet: a fork that has begun is still made, and a thread can send the signal that
        takes the stop back. So the worker is waited for until the kernel says that all its threads stand; only then
        what there is besides is counted. A signal to "all" comes only where there are others: for that the kernel looks
        at every process of the machine, those of all other sessions among them.

        Returns:
            How many others there were; None when they cannot all be killed or stopped, or the worker has ended.
        """
        _send(worker, _SIGSTOP)
        if _stands(worker, STANDS_LOOKS) and self._is_settled():  # there is nothing to look for
            return 0
        deadline = time.monotonic() + FREEZE_SECONDS
        killed: set[int] = set()
        while not _has_ended(worker):
            last = self.born()
            others = self._others(worker, killed)
            if others:  # what dies may wake the worker: it does so before it is seen to have ended
                self._signal_all(_SIGSTOP, worker)
                for pid in others:
                    _send(pid, signal.SIGKILL)
                killed.update(others)
                time.sleep(0.0005)
            elif not _stands(worker, 2):
                _send(worker, _SIGSTOP)
            elif last == self.born() and (last or not self._others(worker, killed)):
                if killed or not self._proc:
                    reap(worker)
                self._settle(worker)
                return len(killed)
            if time.monotonic() > deadline:
                break
        return None

    def _others(self, worker: int, killed: set[int]) -> list[int]:
        """All processes but the worker that run, or that are not among those killed."""
        return [pid for pid in self.all(worker) if pid != worker and (pid not in killed or runs(pid))]

    def _signal_all(self, number: int, worker: int) -> None:
        if self._namespace:
            with contextlib.suppress(OSError):
                os.kill(-1, number)
            return
        for pid in {worker, *self.all(worker)}:
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def end_all(self, worker: int | None, seconds: float = 1.0) -> None:
        """Kill every process of the session; returns when none is left, or after ``seconds`` of trying."""
        deadline = time.monotonic() + seconds
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


def _clock(pid: int) -> int:
    """The clock of another process's processor time, as the kernel numbers it."""
    return (~pid << 3) | 2


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _stands(worker: int, looks: int) -> bool:
    """Whether a child that was sent a stop has stopped with all its threads; between looks it is given a moment."""
    for _ in range(looks):
        try:
            found = os.waitid(os.P_PID, worker, os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        if found is not None:
            return found.si_code == os.CLD_STOPPED
        _wait_for_child(0.001)
    return False


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
