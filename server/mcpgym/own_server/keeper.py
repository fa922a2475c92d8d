"""Keeps one server process: ``python -I -S keeper.py CONTROL STATUS FOLDER COMMAND…``; it imports nothing of ours.

It starts the command in FOLDER and stays beside it. When the command ends, or when the descriptor CONTROL does (we
closed it, or died, in whatever way), it ends all that the command has started, removes FOLDER and says in STATUS how
the command ended. What leaves its parents behind becomes a child of the keeper, on Linux, and is ended as well.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 5.0
"""How long processes may take to be gone once they are killed; one that cannot be is left to the system."""


def main() -> None:
    """Start, wait, clear away."""
    control, status, folder, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    prctl = _prctl()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    waking, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)  # whoever may end this closes CONTROL
    begun, said = os.pipe()
    keeper = os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, folder, said, keeper, prctl)
    os.close(said)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # the pipes belong to the command alone
        os.dup2(null, number)
    problem = b""
    while part := os.read(begun, 4096):
        problem += part
    ended = _wait(control, waking, child)
    _end_all(child)
    if ended is None:
        ended = _reaped(child)
    _remove(folder)
    told = problem or f"{_how(ended)}".encode()
    with contextlib.suppress(OSError):
        os.write(status, told)


def _prctl() -> Callable[[int, int], object]:
    if not sys.platform.startswith("linux"):
        return lambda option, value: None
    import ctypes

    function = ctypes.CDLL(None).prctl
    return lambda option, value: function(option, value, 0, 0, 0)


def _become(command: list[str], folder: str, said: int, keeper: int, prctl: Callable[[int, int], object]) -> None:
    """In the child: the command, as the first of a session of its own, which dies with the keeper."""
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(127)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(folder)
        os.execvp(command[0], command)
    except BaseException as error:
        os.write(said, f"could not be started: {getattr(error, 'strerror', None) or error}".encode("utf-8", "replace"))
    os._exit(127)


def _wait(control: int, waking: int, child: int) -> int | None:
    """The child's wait status; None where CONTROL ended first."""
    while True:
        readable, _, _ = select.select([control, waking], [], [])
        if waking in readable:
            os.read(waking, 4096)
            while True:
                try:
                    pid, ended = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    return None
                if pid == child:
                    return ended
                if pid == 0:
                    break
        if control in readable:
            return None


def _end_all(child: int) -> None:
    """Kill whatever lives below here, again and again until nothing does: it may be starting more meanwhile."""
    until = time.monotonic() + KILL_SECONDS
    pause = 0.001
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        found = _below(os.getpid())
        for stop in (signal.SIGSTOP, signal.SIGKILL):  # what stands still starts nothing
            for pid in found:
                with contextlib.suppress(OSError):
                    os.kill(pid, stop)
        if not _collect(child):
            return
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


_kept: dict[int, int] = {}


def _collect(child: int) -> bool:
    """Take note of those that have ended; whether others are left."""
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        if pid == child:
            _kept[pid] = ended


def _reaped(child: int) -> int | None:
    return _kept.get(child)


def _below(root: int) -> list[int]:
    """The processes below ``root``, where the system lists them."""
    parents: dict[int, int] = {}
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib takes as long to import as all the rest
    except OSError:
        return []
    for name in names:
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    found: list[int] = []
    level = {root}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level and pid != root}
        found += level
    return found


def _remove(folder: str) -> None:
    """The episode's folder, which we made; links in it are not followed."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def _how(ended: int | None) -> str:
    if ended is None:
        return "was ended"
    if os.WIFSIGNALED(ended):
        number = os.WTERMSIG(ended)
        try:
            return f"was killed by {signal.Signals(number).name}"
        except ValueError:
            return f"was killed by signal {number}"
    return f"ended with exit code {os.WEXITSTATUS(ended)}"


if __name__ == "__main__":
    main()
