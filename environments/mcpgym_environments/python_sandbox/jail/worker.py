"""The worker: the process a session's code runs in. It reads requests from init, runs them, and says when each is done.

Nothing it says is believed beyond that: user code shares this process and can say the same.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the names of numbers are not looked up by it
import builtins
import contextlib
import ctypes
import fcntl
import gc
import os
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from mcpgym_environments.python_sandbox.jail.asking import TELL, Asking
from mcpgym_environments.python_sandbox.jail.limits import Limits, hold, take_environment
from mcpgym_environments.python_sandbox.jail.notebook import Notebook

globals()["__builtins__"] = dict(vars(builtins))

RUN, EVALUATE, SEED = 1, 2, 3
"""What init asks for: run a cell; call a function; begin with another seed."""
REAP = 0x80
"""Set in an operation: take the status of ended children first."""
REQUEST = struct.Struct(">BIII")
"""Operation (one of the above, or ``asking.TELL``), number of the call, number of the cell, length of what follows."""
REPLY = struct.Struct(">BIII")
"""Whether it went well (0 or 1; ``asking.ASK`` is a question), number of the call, lengths of a text and a blob."""
MOST_WHY = 500
"""The longest text of a reply, in bytes; see ``frames``, which the worker does without."""
CHANNEL, OUTPUT, NULL = 3, 4, 5
"""The worker's descriptors: init, a second hold on the output pipe should a cell close the first, and one on /dev/null:
a cell may also leave no descriptor free to open it anew."""

_READ = 1 << 16
_unpack, _pack, _size = REQUEST.unpack_from, REPLY.pack, REQUEST.size
_read, _write, _getpid, _exit = os.read, os.write, os.getpid, os._exit
_dup2, _set_blocking = os.dup2, os.set_blocking
_suppress, _waitpid = contextlib.suppress, os.waitpid
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1
_DEFAULT = [number for number in range(1, signal.NSIG) if number not in (signal.SIGKILL, signal.SIGSTOP)]
_IGNORED = [int(getattr(signal, name)) for name in ("SIGPIPE", "SIGXFSZ", "SIGINT")]


@dataclass(frozen=True, slots=True)
class Orders:
    """What a worker is told when it is forked.

    Args:
        limits: what it may use.
        seed: what its generators of random numbers begin with.
        work: the workspace.
        scratch: the folder for temporary files.
        confine: what the place adds for the process that runs user code, after all else and before any of it.
        count_processes: whether the user id is the session's own.
        asks: what its code may ask; None where it may ask nothing.
    """

    limits: Limits
    seed: int
    work: str
    scratch: str
    confine: Callable[[], None] | None
    count_processes: bool
    asks: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A notebook in which nothing has run, made before the worker was forked, and what it was made for."""

    notebook: Notebook
    work: str
    scratch: str


prepared: list[Prepared] = []
"""The notebook of every worker that is forked from now on, if there is one; the interpreter is as it needs it."""


def main(channel: int, output: int, parent: int, orders: Orders) -> NoReturn:
    """Be the worker of init, from the fork on; never returns.

    Args:
        channel: this side's end of the pair of sockets to init.
        output: the writing end of the output pipe.
        parent: init's process id: without it, there is nothing to do.
        orders: all else.
    """
    try:
        _arrange(channel, output, parent)
        if orders.confine is not None:
            orders.confine()
        notebook = _notebook(orders)
        asking = None
        if orders.asks is not None:
            asking = Asking(CHANNEL, orders.asks, REQUEST, REPLY)
            notebook.offer(asking.functions())
        serve(notebook, asking)
    except EOFError:
        _exit(0)
    except BaseException as error:
        with _suppress(BaseException):
            _write(OUTPUT, f"the worker failed: {type(error).__name__}: {error}\n".encode("utf-8", "replace")[:2000])
    _exit(70)


def _arrange(channel: int, output: int, parent: int) -> None:
    """Own descriptors and signals, nothing of init's."""
    os.setsid()
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, _signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            _exit(72)
    channel = fcntl.fcntl(channel, fcntl.F_DUPFD, 10)
    output = fcntl.fcntl(output, fcntl.F_DUPFD, 10)
    null = fcntl.fcntl(os.open("/dev/null", os.O_RDONLY), fcntl.F_DUPFD, 10)
    _dup2(null, 0)
    _dup2(output, 1)
    _dup2(output, 2)
    _dup2(channel, CHANNEL, False)
    _dup2(output, OUTPUT, False)
    _dup2(null, NULL, False)
    os.closerange(NULL + 1, 4096)
    for number in _DEFAULT:  # without the names that the module signal has for everything
        try:
            _signal.signal(number, _signal.SIG_DFL)
        except (OSError, ValueError):
            pass
    for number in _IGNORED:
        _signal.signal(number, _signal.SIG_IGN)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def _notebook(orders: Orders) -> Notebook:
    """The notebook, and the interpreter and its limits as the code in it is to find them."""
    made = prepared.pop() if prepared else None
    if made is None or (made.work, made.scratch) != (orders.work, orders.scratch):
        take_environment(orders.work, orders.scratch)
        notebook = Notebook(orders.work) if made is None else made.notebook
        notebook.settle(orders.work)
    else:
        notebook = made.notebook
    if made is None:
        os.register_at_fork(before=notebook.flush)
        for name in [name for name in sys.modules if name.partition(".")[0] == "mcpgym_environments"]:
            del sys.modules[name]
    if made is None or orders.seed:
        notebook.seed(orders.seed)
    os.chdir(orders.work)
    os.umask(0o022)
    hold(orders.limits, count_processes=orders.count_processes)
    gc.enable()  # as code expects it; the fork server does without, and what it made is never looked at
    return notebook


def serve(notebook: Notebook, asking: Asking | None = None) -> NoReturn:
    """Answer init, on the worker's descriptors.

    Raises:
        EOFError: init asks for nothing more.
    """
    here = _getpid()
    held = b""
    while True:
        if asking is not None and asking.held:  # what came while code waited for an answer
            held += bytes(asking.held)
            asking.held.clear()
        while len(held) < _size:
            held += _more()
        operation, call, cell, length = _unpack(held)
        if len(held) < _size + length:
            parts, left = [held], _size + length - len(held)
            while left > 0:
                parts.append(_more())
                left -= len(parts[-1])
            held = b"".join(parts)
        blob, held = held[_size : _size + length], held[_size + length :]
        if operation == SEED:
            notebook.seed(int(blob))
            continue
        if operation == TELL:  # who asked waits no more
            continue
        if operation & REAP:
            operation &= ~REAP
            with _suppress(OSError):
                while _waitpid(-1, os.WNOHANG)[0]:
                    pass
        _hold_output()
        if asking is not None:
            asking.begin(call)
        why: str | None = None
        value = b""
        if operation == RUN:
            fine = notebook.run(cell, blob)
        else:
            name, _, arguments = blob.partition(b"\0")
            fine, value, why = notebook.evaluate(cell, name.decode(), arguments)
        blob = b""
        if asking is not None:
            asking.end()
        if _getpid() != here:  # a child that the code forked and did not end
            notebook.flush()
            code = notebook.exit_code
            _exit((0 if fine else 1) if code is None else code & 0xFF)
        text = b"" if why is None else why.encode("utf-8", "backslashreplace")[:MOST_WHY]
        _send(_pack(0 if fine else 1, call, len(text), len(value)) + text + value)


def _hold_output() -> None:
    """Descriptors 0, 1 and 2 as they were, whatever a cell did to them."""
    _dup2(OUTPUT, 1)
    _dup2(OUTPUT, 2)
    _set_blocking(OUTPUT, True)
    _dup2(NULL, 0)


def _more() -> bytes:
    while True:
        try:
            part = _read(CHANNEL, _READ)
        except BlockingIOError:  # a cell made it so
            _set_blocking(CHANNEL, True)
            continue
        if not part:
            raise EOFError
        return part


def _send(data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[_write(CHANNEL, rest) :]
        except BlockingIOError:
            _set_blocking(CHANNEL, True)
