"""The worker: the process a session's code runs in. It reads requests from init, runs them, and says when each is done.

Nothing it says is believed beyond that: user code shares this process and can say the same.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import fcntl
import json
import os
import signal
import struct
import sys
from collections.abc import Callable

from mcpgym_environments.python_sandbox.jail.limits import Limits, hold, take_environment
from mcpgym_environments.python_sandbox.jail.notebook import Notebook

globals()["__builtins__"] = dict(vars(builtins))

BEGIN, RUN, EVALUATE = 1, 2, 3
"""What init asks for: take on limits and a seed; run a cell; call a function."""
REAP = 0x80
"""Set in an operation: take the status of ended children first."""
REQUEST = struct.Struct(">BIII")
"""Operation, number of the call, number of the cell, length of what follows."""
REPLY = struct.Struct(">BIII")
"""Whether it went well (0 or 1), number of the call, lengths of a text and of a blob that follow."""
MOST_WHY = 500
"""The longest text of a reply, in bytes; see ``frames``, which the worker does without."""
CHANNEL, OUTPUT, NULL = 3, 4, 5
"""The worker's descriptors: init, a second hold on the output pipe should a cell close the first, and one on /dev/null:
a cell may also leave no descriptor free to open it anew."""

_unpack, _pack = REQUEST.unpack, REPLY.pack
_read, _write, _getpid, _exit = os.read, os.write, os.getpid, os._exit
_dup2, _set_blocking = os.dup2, os.set_blocking
_suppress, _waitpid = contextlib.suppress, os.waitpid
_decode = json.JSONDecoder().decode
_PR_SET_PDEATHSIG = 1


def main(channel: int, output: int, parent: int, confine: Callable[[], None] | None, count_processes: bool) -> None:
    """Be the worker of init, from the fork on; never returns.

    Args:
        channel: this side's end of the pair of sockets to init.
        output: the writing end of the output pipe.
        parent: init's process id: without it, there is nothing to do.
        confine: what the place adds for the process that runs user code, after all else and before any of it.
        count_processes: whether the user id is the session's own.
    """
    try:
        _arrange(channel, output, parent)
        if confine is not None:
            confine()
        _serve(count_processes)
    except BaseException as error:
        with _suppress(BaseException):
            _write(OUTPUT, f"the worker failed: {type(error).__name__}: {error}\n".encode("utf-8", "replace")[:2000])
        _exit(70)
    _exit(71)


def _arrange(channel: int, output: int, parent: int) -> None:
    """Own descriptors and signals, nothing of init's."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            _exit(72)
    channel = fcntl.fcntl(channel, fcntl.F_DUPFD, 10)
    output = fcntl.fcntl(output, fcntl.F_DUPFD, 10)
    null = fcntl.fcntl(os.open(os.devnull, os.O_RDONLY), fcntl.F_DUPFD, 10)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.dup2(channel, CHANNEL, inheritable=False)
    os.dup2(output, OUTPUT, inheritable=False)
    os.dup2(null, NULL, inheritable=False)
    os.closerange(NULL + 1, 4096)
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
    for name in ("SIGPIPE", "SIGXFSZ", "SIGINT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _serve(count_processes: bool) -> None:
    notebook: Notebook | None = None
    here = _getpid()
    while True:
        operation, call, cell, length = _unpack(_exactly(REQUEST.size))
        blob = _exactly(length)
        if operation == BEGIN:
            notebook = _begin(blob, count_processes)
            continue
        assert notebook is not None
        if operation & REAP:
            operation &= ~REAP
            with _suppress(OSError):
                while _waitpid(-1, os.WNOHANG)[0]:
                    pass
        _hold_output()
        why: str | None = None
        value = b""
        if operation == RUN:
            fine = notebook.run(cell, blob)
        else:
            name, _, arguments = blob.partition(b"\0")
            fine, value, why = notebook.evaluate(cell, name.decode(), arguments)
        blob = b""
        if _getpid() != here:  # a child that the code forked and did not end
            notebook.flush()
            code = notebook.exit_code
            _exit((0 if fine else 1) if code is None else code & 0xFF)
        text = b"" if why is None else why.encode("utf-8", "backslashreplace")[:MOST_WHY]
        _send(_pack(0 if fine else 1, call, len(text), len(value)) + text + value)


def _begin(blob: bytes, count_processes: bool) -> Notebook:
    orders = _decode(blob.decode())
    take_environment(orders["work"], orders["scratch"])
    os.chdir(orders["work"])
    os.umask(0o022)
    notebook = Notebook(orders["work"])
    notebook.seed(orders["seed"])
    hold(Limits.of(orders["limits"]), count_processes=count_processes)
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcpgym_environments"]:
        del sys.modules[name]
    return notebook


def _hold_output() -> None:
    """Descriptors 0, 1 and 2 as they were, whatever a cell did to them."""
    _dup2(OUTPUT, 1)
    _dup2(OUTPUT, 2)
    _set_blocking(OUTPUT, True)
    _dup2(NULL, 0)


def _exactly(count: int) -> bytes:
    parts = []
    while count:
        part = _read(CHANNEL, min(count, 1 << 20))
        if not part:
            _exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _send(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[_write(CHANNEL, rest) :]
