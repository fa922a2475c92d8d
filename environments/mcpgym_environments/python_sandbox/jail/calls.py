"""One call: a request to the worker, watched until it ends, one way or another."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from dataclasses import dataclass

from mcpgym_environments.python_sandbox.jail import frames, worker
from mcpgym_environments.python_sandbox.jail.asking import ASK, TELL
from mcpgym_environments.python_sandbox.jail.capture import Capture
from mcpgym_environments.python_sandbox.jail.files import Workspace
from mcpgym_environments.python_sandbox.jail.forwarding import Forwarding
from mcpgym_environments.python_sandbox.jail.limits import Limits
from mcpgym_environments.python_sandbox.jail.processes import Processes
from mcpgym_environments.python_sandbox.jail.values import MOST_BYTES
from mcpgym_environments.python_sandbox.jail.workers import Worker

GRACE = 0.5
"""Seconds between an interrupt and the end."""
AGAIN = 0.2
"""Seconds for processes to go that were killed already: many that hold much take long, and the server does not wait."""
CROWD = 4
"""From so many killed children on, the worker takes their status before its next call."""
TICK = 0.1
"""Seconds between two looks at processor time, memory and disk."""
BRIEF_MS = 2
"""How long output may wait to be read at the beginning of a call: most are over by then, and wake init up only once."""
_READ = 1 << 18
_FIRST = 1 << 12
"""How much is asked for at first: nearly always enough."""
_HANGUP = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class Closed(Exception):
    """The server has closed its end."""


class Broken(Exception):
    """The worker's channel carries something no worker sends; user code wrote there."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a call ended: status, why, whether a new worker is needed, and the JSON of a returned value."""

    status: str
    why: str | None = None
    fresh: bool = False
    value: bytes = b""


_OK = Ended("ok")


class Call:
    """One call of a worker.

    Args:
        to: the worker.
        processes: the session's.
        limits: what this call may use.
        server: descriptor that hangs up when the server is gone.
        files: the workspace where its size must be watched; None where the kernel does that.
        asks: takes the questions of its code; None where it may ask nothing.
    """

    __slots__ = (
        "_asked", "_asking", "_asks", "_cpu", "_deaf", "_files", "_interrupted", "_limits", "_lost", "_processes",
        "_server", "_spent", "_worker", "capture",
    )  # fmt: skip

    def __init__(
        self,
        to: Worker,
        processes: Processes,
        limits: Limits,
        server: int,
        files: Workspace | None,
        asks: Forwarding | None = None,
    ) -> None:
        self._worker = to
        self._processes = processes
        self._limits = limits
        self._server = server
        self._files = files
        self._asks = asks
        self._asked = 0
        self._asking: float | None = None  # since when a question waits for its answer
        self._interrupted: str | None = None
        self._deaf = False
        self._cpu = self._spent = self._lost = 0.0
        self.capture = Capture(limits.output_bytes)

    def make(self, operation: int, cell: int, blob: bytes) -> Ended:
        """Make the call, and wait until it ended.

        Raises:
            Closed: the server went away meanwhile.
        """
        to = self._worker
        to.calls += 1
        self._cpu = self._processes.mark(to.pid)
        rest = to.ask(operation | (worker.REAP if to.orphaned else 0), to.calls, cell, blob)
        to.resume()  # only now: it wakes up once
        try:
            ended = self._watch(rest)
        except Broken:
            ended = self._end("crashed", "wrote to the channel of the worker")
        if not ended.fresh:
            to.stopped = True
            others = self._processes.freeze(to.pid)
            if others is None:
                ended = self._stuck(ended)
            else:
                to.orphaned = others >= CROWD
            self._drain()
        return ended

    # ------------------------------------------------------------------ waiting

    def _watch(self, rest: memoryview | bytes) -> Ended:
        to = self._worker
        start = time.monotonic()
        if not rest and min(self._limits.seconds, TICK) * 1000 > BRIEF_MS and to.brief.poll(BRIEF_MS):
            ended = self._replied()
            if ended is not None:
                self._leave_question(b"")
                return ended
        deadline = start + self._limits.seconds
        look = start + TICK
        writing = False
        poll = to.poll()
        while True:
            if bool(rest) != writing and not self._deaf:
                writing = not writing
                poll.modify(to.channel, select.POLLIN | (select.POLLOUT if writing else 0))
            waits = self._asking is not None and self._interrupted is None  # on its answer: the clock stands still
            pause = (look if waits else min(deadline, look)) - time.monotonic()
            if to.death < 0:
                pause = min(pause, 0.01)
            for descriptor, event in poll.poll(max(0.0, pause * 1000)):
                if descriptor == to.output:
                    self._output()
                elif descriptor == to.death:
                    return self._died()
                elif descriptor == self._server:
                    if event & _HANGUP:
                        raise Closed
                    if self._asking is not None:
                        deadline, rest = self._told(deadline, rest)
                elif event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    ended = self._replied()
                    if ended is not None:
                        self._leave_question(rest)
                        return ended
                if descriptor == to.channel and event & select.POLLOUT:
                    rest = to.push(memoryview(rest))
            if to.death < 0 and self._fate(wait=False) is not None:
                return self._died()
            now = time.monotonic()
            if now >= deadline and (self._asking is None or self._interrupted is not None):
                if self._interrupted is not None:
                    return self._end("killed", self._interrupted)
                self._interrupt("timeout")
                deadline = now + GRACE
            if now >= look:
                look = now + TICK
                excess = self._excess()
                if excess == "cpu" and self._interrupted is None:
                    self._interrupt("cpu")
                    deadline = now + GRACE
                elif excess not in (None, "cpu"):
                    return self._end("killed", excess)

    def _told(self, deadline: float, rest: memoryview | bytes) -> tuple[float, memoryview | bytes]:
        """Hand on the server's answer to the question that waits; the deadline without the time that took."""
        assert self._asks is not None
        assert self._asking is not None
        answer = self._asks.told()
        if answer is None:
            return deadline, rest
        to = self._worker
        to.poll().modify(self._server, getattr(select, "POLLRDHUP", 0))
        if self._interrupted is None:  # afterwards the clock went on
            deadline += time.monotonic() - self._asking
        self._asking = None
        if self._deaf:
            return deadline, rest
        answer = worker.REQUEST.pack(TELL, to.calls, 0, len(answer)) + answer
        return deadline, to.push(memoryview(bytes(rest) + answer))

    def _leave_question(self, rest: memoryview | bytes) -> None:
        """The call has ended: what is still to be written of an answer goes before the next call's request."""
        if self._asks is not None:
            self._worker.unsent = rest
        if self._asking is not None:
            self._worker.poll().modify(self._server, getattr(select, "POLLRDHUP", 0))

    def _question(self, question: bytes) -> Ended | None:
        """Hand a question on to the server; how the call ends if it may not be asked."""
        assert self._asks is not None
        if self._interrupted is not None:  # its time is over
            return None
        self._asked += 1
        if self._asked > self._asks.most_asks:
            return self._end("killed", "asks")
        self._asks.ask(question)
        self._asking = time.monotonic()
        self._worker.poll().modify(self._server, select.POLLIN | getattr(select, "POLLRDHUP", 0))
        return None

    def _interrupt(self, why: str) -> None:
        self._interrupted = why
        for number in (signal.SIGINT, signal.SIGCONT):  # the second, because code can stop itself
            with contextlib.suppress(OSError):
                os.kill(self._worker.pid, number)

    def _excess(self) -> str | None:
        """What the session uses too much of."""
        used = self._processes.usage(self._worker.pid)
        if used.memory > self._limits.memory and self._processes.crowded(self._worker.pid, self._limits.memory):
            return "memory"
        if self._processes.hidden(self._worker.pid) > self._limits.memory:
            return "memory"
        if used.threads > self._limits.processes + 1:
            return "processes"
        if self._files is not None:
            size, count = self._files.usage(max(self._limits.workspace_files, self._files.full[1]))
            size += self._processes.nameless(self._worker.pid, self._files.device)
            if size > max(self._limits.workspace_bytes, self._files.full[0]):
                return "disk"
            if count > max(self._limits.workspace_files, self._files.full[1]):
                return "disk"
        return "cpu" if self._processor_time(used.cpu) > self._limits.cpu_seconds else None

    def _processor_time(self, cpu: float) -> float:
        """What this call used, with what was seen of processes that ended and that nobody waited for.

        Those take their time with them. Of ones that began and ended between two looks nothing is ever seen: all
        processors for as long as the call may last is what they can use.
        """
        spent = max(0.0, cpu - self._cpu)  # the one is told in ticks, the other may be exact
        if spent < self._spent:  # or one ended while they were looked at
            spent = max(0.0, self._processes.usage(self._worker.pid).cpu - self._cpu)
            self._lost += max(0.0, self._spent - spent)
        self._spent = spent
        return spent + self._lost

    # ------------------------------------------------------------------ what comes

    def _output(self, most: int = _READ) -> bool:
        """Take output; whether there may be more."""
        try:
            data = os.read(self._worker.output, most)
        except BlockingIOError:
            return False
        self.capture.feed(data)
        return len(data) == most

    def _drain(self) -> None:
        """What is left in the pipe; bounded, should somebody still be writing."""
        if self._output(_FIRST):
            for _ in range(64):
                if not self._output():
                    return

    def _replied(self) -> Ended | None:
        to = self._worker
        try:
            data = os.read(to.channel, _READ if to.received else _FIRST)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        if not data:  # the process ends, or has become another program, or code closed the descriptor: watch on
            to.poll().unregister(to.channel)
            self._deaf = True
            return None
        received = to.received
        received += data
        size = worker.REPLY.size
        while len(received) >= size:
            code, call, text_length, value_length = worker.REPLY.unpack_from(received)
            most = MOST_BYTES
            if code == ASK and self._asks is not None and self._asking is None:
                most = self._asks.most_bytes
            elif code > 1:
                raise Broken
            if text_length > worker.MOST_WHY or value_length > most or call > to.calls:
                raise Broken
            end = size + text_length + value_length
            if len(received) < end:
                return None
            text = bytes(received[size : size + text_length])
            value = bytes(received[size + text_length : end])
            del received[:end]
            if call != to.calls:
                continue
            if code == ASK:
                ended = self._question(value)
                if ended is not None:
                    return ended
            else:
                return self._done(code, text.decode("utf-8", "backslashreplace"), value)
        return None

    def _done(self, code: int, text: str, value: bytes) -> Ended:
        if self._interrupted is not None:
            return Ended("timeout", self._interrupted)
        if code:
            return Ended("error", text or None)
        if not value:
            return _OK
        try:
            frames.parsed(value)
        except frames.FrameError:
            return Ended("error", "not JSON: what was written to the channel of the worker")
        return Ended("ok", None, value=value)

    # ------------------------------------------------------------------ its end

    def _died(self) -> Ended:
        fate = self._fate() or "unknown"
        if self._interrupted is not None:
            return self._end("killed", self._interrupted)
        return self._end("crashed", fate)

    def _end(self, status: str, why: str, seconds: float = 1.0) -> Ended:
        self._processes.end_all(self._worker.pid, seconds)
        self._drain()
        if why == "disk" and self._files is not None:
            self._files.shed()
            self._files.full = self._files.usage()
        return Ended(status, why, fresh=True)

    def _stuck(self, ended: Ended) -> Ended:
        """The call ended, but its worker cannot be stopped: it ended as well, or forks faster than it is killed."""
        fate = self._fate()
        if fate is None or ended.status == "timeout":
            return self._end("killed", ended.why or "timeout", AGAIN)
        return self._end("crashed", fate, AGAIN)

    def _fate(self, wait: bool = True) -> str | None:
        """How the worker ended, from the kernel; None while it lives."""
        options = os.WEXITED | os.WNOWAIT | (0 if wait and self._gone() else os.WNOHANG)
        try:
            found = os.waitid(os.P_PID, self._worker.pid, options)
        except ChildProcessError:
            return "unknown"
        if found is None:
            return None
        if found.si_code == os.CLD_EXITED:
            return f"exit {found.si_status}"
        with contextlib.suppress(ValueError):
            return f"signal {signal.Signals(found.si_status).name}"
        return f"signal {found.si_status}"

    def _gone(self) -> bool:
        return self._worker.death >= 0 and bool(select.select([self._worker.death], [], [], 0)[0])
