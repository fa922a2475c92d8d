"""Init's side of a worker: its process, its channel and its output."""

from __future__ import annotations

import _socket
import fcntl
import os
import select
import signal
from collections.abc import Callable

from mcpgym_environments.python_sandbox.jail import worker
from mcpgym_environments.python_sandbox.jail.forking import fork

_F_SETPIPE_SZ = 1031
_SIGCONT = int(signal.SIGCONT)


class Worker:
    """A worker process and this side's ends of its channel and its output.

    Args:
        server: descriptor that hangs up when the server is gone.
        body: what the forked process does, with its end of the channel, of the output pipe, and init's process id.
    """

    __slots__ = (
        "_server", "_watching", "_writer", "brief", "calls", "channel", "death", "orphaned", "output", "pid",
        "received", "stopped", "unsent",
    )  # fmt: skip

    def __init__(self, server: int, body: Callable[[int, int, int], object]) -> None:
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)
        self.channel, channel = ours.detach(), theirs.detach()
        self.output, writer = os.pipe()
        parent = os.getpid()
        self.pid = fork()
        if not self.pid:
            body(channel, writer, parent)
            os._exit(73)
        os.close(channel)
        os.set_blocking(self.channel, False)
        os.set_blocking(self.output, False)
        self._server = server
        self._writer = writer  # held, so that the pipe does not end when user code closes its descriptors
        self._watching: select.poll | None = None
        self.stopped = False
        self.orphaned = False
        """Whether it has many ended children that nobody waited for; they count as processes until then."""
        self.calls = 0
        self.received = bytearray()
        self.unsent: memoryview | bytes = b""
        """The rest of an answer whose question's call ended before the channel took it."""
        try:
            fcntl.fcntl(writer, _F_SETPIPE_SZ, 1 << 18)  # fewer changes of process when much is printed
        except OSError:
            pass
        try:
            self.death = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            self.death = -1
        self.brief = select.poll()
        """Waits for what comes over the channel alone."""
        self.brief.register(self.channel, select.POLLIN)

    def poll(self) -> select.poll:
        """Waits for anything that can happen in a call; made when a call is not over at once."""
        if self._watching is None:
            self._watching = select.poll()
            self._watching.register(self.channel, select.POLLIN)
            self._watching.register(self.output, select.POLLIN)
            if self.death >= 0:
                self._watching.register(self.death, select.POLLIN)
            self._watching.register(self._server, getattr(select, "POLLRDHUP", 0))
        return self._watching

    def ask(self, operation: int, call: int, cell: int, blob: bytes) -> memoryview | bytes:
        """Send a request; gives what the channel did not take yet."""
        data = worker.REQUEST.pack(operation, call, cell, len(blob)) + blob
        if self.unsent:
            data, self.unsent = bytes(self.unsent) + data, b""
        try:
            sent = os.write(self.channel, data)
        except OSError:
            return self.push(memoryview(data))
        return b"" if sent == len(data) else self.push(memoryview(data)[sent:])

    def push(self, data: memoryview) -> memoryview:
        """Send what the channel takes, give what is left."""
        while data:
            try:
                data = data[os.write(self.channel, data) :]
            except BlockingIOError:
                return data
            except OSError:  # closed by the worker's side: its end will be noticed
                return data[:0]
        return data

    def resume(self) -> None:
        """Let it run."""
        if self.stopped:
            self.stopped = False
            try:
                os.kill(self.pid, _SIGCONT)
            except OSError:
                pass

    def close(self) -> None:
        """Let go of what was held for a worker that has ended."""
        for descriptor in (self.channel, self.output, self._writer, self.death):
            if descriptor >= 0:
                os.close(descriptor)
