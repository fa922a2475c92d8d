"""What every session does once, done in the fork server before it forks any: sessions then share the outcome.

A page that a session writes to is its own from then on, and Python writes while it only reads: code that runs for the
first times is rewritten to faster forms, caches are filled, modules make what they need at their first use. After a
rehearsal all that lies in pages that nobody writes to again: half as much memory for each session, and a quicker start.
Init and the worker are rehearsed as they are, on requests that lie ready in a socket. Nothing of it is left that code
in a session could find.
"""

from __future__ import annotations

import builtins
import contextlib
import fcntl
import linecache
import os
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

from mcpgym_environments.python_sandbox.jail import frames, init, limits, worker
from mcpgym_environments.python_sandbox.jail.notebook import Notebook

TIMES = 40
"""More often than the interpreter waits before it rewrites a function."""
CELLS = (
    b"import math\nx = [number for number in range(10)]\nprint(x)\n1 / 0\n",
    b"def double(value):\n    return 2 * value\n1 + 1\n",
)
"""A cell that ends in an error (how errors are shown touches the most), and one that shows a value."""


_kept: list[Any] = []


def rehearse() -> None:
    """Be a worker and an init, with requests as a server sends them. Nothing is written to any folder."""
    work = os.path.dirname(os.path.abspath(__file__))
    path, main, before = list(sys.path), sys.modules["__main__"], set(vars(builtins))
    lines = set(linecache.cache)
    _worker(Notebook(work))
    with contextlib.suppress(OSError):  # nothing can be forked: it will be told to who asks for a session
        _init(work)
    for name in set(linecache.cache) - lines:
        del linecache.cache[name]
    for name in set(vars(builtins)) - before:
        delattr(builtins, name)
    sys.path[:] = path
    sys.modules["__main__"] = main


def prepare(work: str = "", scratch: str = "") -> None:
    """Make the notebook that all workers begin with, for these folders if all have the same; and seed it with 0."""
    _kept.append(sys.modules["__main__"])
    if work:
        limits.take_environment(work, scratch)
    notebook = Notebook(work or "/work")
    os.register_at_fork(before=notebook.flush)
    notebook.seed(0)
    worker.prepared[:] = [worker.Prepared(notebook, work, scratch)]


def _worker(notebook: Notebook) -> None:
    """The worker's part, in this process."""
    call = b"double\0[21]"
    asked = []
    for number in range(TIMES):
        asked += [(worker.SEED, b"%d" % number), *((worker.RUN, cell) for cell in CELLS), (worker.EVALUATE, call)]
    with _descriptors_of_a_worker() as channel:
        for number, (operation, blob) in enumerate(asked):
            channel.sendall(worker.REQUEST.pack(operation, number, number, len(blob)) + blob)
        channel.shutdown(socket.SHUT_WR)
        with contextlib.suppress(EOFError):
            worker.serve(notebook)


@contextlib.contextmanager
def _descriptors_of_a_worker() -> Iterator[socket.socket]:
    """The worker's channel leads to the socket that this gives, and what it prints nowhere; as before afterwards."""
    kept = {}
    for number in range(worker.NULL + 1):
        with contextlib.suppress(OSError):
            kept[number] = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, worker.NULL + 1)
    ours, theirs = socket.socketpair()
    null = os.open(os.devnull, os.O_RDWR)
    high = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, worker.NULL + 1) for number in (ours, theirs, null)]
    for opened in (ours, theirs):
        opened.close()
    os.close(null)
    try:
        for number in range(worker.NULL + 1):
            os.dup2(high[1] if number == worker.CHANNEL else high[2], number)
        with socket.socket(fileno=high[0]) as channel:
            yield channel
    finally:
        for number in range(worker.NULL + 1):
            if number in kept:
                os.dup2(kept[number], number, inheritable=number < 3)
            else:
                os.close(number)
        for number in (*kept.values(), *high[1:]):
            os.close(number)


def _init(work: str) -> None:
    """Init's part, in this process; its worker is one that is forked."""
    handlers = {number: signal.getsignal(number) for number in range(1, signal.NSIG)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    asked: list[tuple[dict[str, Any], bytes]] = [({"op": "hello", "spec": {"limits": vars(limits.Limits())}}, b"")]
    for number in range(TIMES):
        asked += [({"op": "run", "seconds": 5.0, "cpu_seconds": 5.0, "seed": number}, cell) for cell in CELLS]
    # only the process that it forks is init's: in a place without namespaces it looks at no others, and ends no others
    place = init.Place(work=work, writable=(work,), scratch=work, namespace=False, own_user=False, packages={})
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for number, (header, blob) in enumerate(asked):
            ours.sendall(frames.encode({**header, "n": number}, blob))
        ours.sendall(b"\xff" * frames.HEAD_BYTES)  # no frame, and so the end; a closed socket would end the first call
        try:
            init.serve(theirs, place)
        finally:
            for number, handler in handlers.items():
                with contextlib.suppress(OSError, ValueError, TypeError):
                    signal.signal(number, handler)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
