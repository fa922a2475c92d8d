"""Keeps one agent: starts it, and when it ends, or is to end, ends every process that came of it.

``python -I keeper.py REPORT STDIN COMMAND…``: a program of its own, with nothing imported, so that it starts at once.
It is a child subreaper (Linux): what an agent starts and leaves behind becomes the keeper's child, however often it
forks and whatever group or session it makes, and ends with it. REPORT is a file descriptor for one line of JSON:
``code`` (negative for a signal; null where it was told to end it), ``left`` (how many processes had to be ended that
the agent left behind), or ``error`` (why it could not be started). When its own standard input ends, whoever started
it is gone, or wants the end.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

GRACE_SECONDS = 1.0
"""How long an agent that is asked to end may take to end by itself."""
END_SECONDS = 10.0
"""For how long processes that fork faster than they are ended are hunted."""
LOOK_SECONDS = 0.5
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36


def main() -> None:
    """Start, keep, end, report."""
    report, stdin, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    os.set_inheritable(report, False)
    if sys.platform == "linux":
        system = ctypes.CDLL(None)
        system.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        system.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started it, who then ends standard input
    try:
        with open(stdin, "rb") as file:  # noqa: PTH123  # no imports
            agent = subprocess.Popen(command, stdin=file, start_new_session=True)
    except OSError as error:
        _say(report, {"error": f"{command[0]}: {error.strerror or error}"})
        return
    code = _kept(agent.pid)
    if code is None:
        _ask_to_end(agent.pid)
    _say(report, {"code": code, "left": _end_all()})


def _kept(agent: int) -> int | None:
    """Wait for the agent's end; its exit code, or None where it is to be ended."""
    parent = os.getppid()
    waiting: list[int] = [0]
    if hasattr(os, "pidfd_open"):
        waiting.append(os.pidfd_open(agent))
    while True:
        if (code := _reaped(agent)) is not None:
            return code
        ready, _, _ = select.select(waiting, [], [], LOOK_SECONDS if len(waiting) > 1 else 0.05)
        if (0 in ready and not os.read(0, 4096)) or os.getppid() != parent:
            return None


def _reaped(agent: int) -> int | None:
    """Collect every child that has ended; the agent's exit code, if it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == agent:
                found = os.waitstatus_to_exitcode(status)
    return found


def _ask_to_end(agent: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(agent, signal.SIGTERM)
    until = time.monotonic() + GRACE_SECONDS
    while time.monotonic() < until and _reaped(agent) is None:
        time.sleep(0.02)


def _end_all() -> int:
    """End every descendant: first stop all, so that none can fork, then kill them; how many there were."""
    ended: set[int] = set()
    until = time.monotonic() + END_SECONDS
    while time.monotonic() < until:
        stopped: set[int] = set()
        while new := _descendants() - stopped:
            _signal(new, signal.SIGSTOP)
            stopped |= new
            if time.monotonic() > until:
                break
        _signal(stopped, signal.SIGKILL)
        ended |= stopped
        _reaped(0)
        if not stopped:
            break
        time.sleep(0.01)
    return len(ended)


def _signal(pids: set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _descendants() -> set[int]:
    """The living processes that came of this one."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    below = [os.getpid()]
    while below:
        new = [child for child in children.get(below.pop(), ()) if child not in found]
        found.update(new)
        below += new
    return found


def _parents() -> list[tuple[int, int]]:
    """Each living process and its parent."""
    if sys.platform != "linux":
        listing = subprocess.Popen(["ps", "-axo", "pid=,ppid=,stat="], stdout=subprocess.PIPE, text=True)
        rows = [line.split() for line in listing.communicate()[0].splitlines()]
        living = [row for row in rows if len(row) > 2 and not row[2].startswith("Z") and int(row[0]) != listing.pid]
        return [(int(row[0]), int(row[1])) for row in living]
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208  # no imports
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state not in (b"Z", b"X"):
                    found.append((int(name), int(parent)))
    return found


def _say(report: int, what: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        os.write(report, json.dumps(what).encode() + b"\n")


if __name__ == "__main__":
    main()
