"""The kernel's table of processes, as ``/proc`` shows it; and ending processes by it, from outside of a session."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_LISTS_CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").exists()


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


def stat_of(pid: int) -> list[bytes] | None:
    """The fields of /proc/<pid>/stat after the name."""
    fields = fields_of(_text(f"/proc/{pid}/stat"))
    return fields if len(fields) > 21 else None


def runs(pid: int) -> bool:
    """Whether a process or one of its threads has not ended."""
    fields = stat_of(pid)
    return fields is not None and (fields[0] not in (b"Z", b"X") or int(fields[17]) > 1)


def fields_of(text: bytes) -> list[bytes]:
    """The fields of the text of a ``/proc/<pid>/stat`` after the name."""
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
            fields = stat_of(int(name))
            if fields is not None:
                found[int(name)] = int(fields[1])
    return found
