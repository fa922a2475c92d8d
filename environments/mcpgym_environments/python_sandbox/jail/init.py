"""Init: owns a session. It answers the server's frames one at a time, and says how each call ended.

User code may share its user id and may send it anything through the worker's channel. So: what comes from the worker
is read within limits and checked; how a call ended is what the kernel says (wait status, clocks, memory); between
calls every process but the worker is dead and the worker is stopped.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the names of numbers are not looked up by it
import importlib
import os
import platform
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mcpgym_environments.python_sandbox.jail import emptying, frames, worker
from mcpgym_environments.python_sandbox.jail.calls import AGAIN, Call, Closed
from mcpgym_environments.python_sandbox.jail.files import Fault, Workspace
from mcpgym_environments.python_sandbox.jail.forwarding import Forwarding
from mcpgym_environments.python_sandbox.jail.limits import Limits
from mcpgym_environments.python_sandbox.jail.place import Place
from mcpgym_environments.python_sandbox.jail.processes import Processes
from mcpgym_environments.python_sandbox.jail.tar import TarParts
from mcpgym_environments.python_sandbox.jail.worker import Orders
from mcpgym_environments.python_sandbox.jail.workers import Worker

_PYTHON, _MACHINE = platform.python_version(), platform.machine()
_READ = 1 << 14
_IGNORED = [
    number for number in range(1, signal.NSIG) if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD)
]


def serve(
    stream: socket.socket | tuple[int, int],
    place: Place | None = None,
    *,
    facts: Mapping[str, Any] | None = None,
    confine: Callable[[], None] | None = None,
) -> None:
    """Serve one session until the server closes the stream; nothing of it runs when this returns.

    Called in the process that is to be init, single-threaded. A worker is forked at once, so that it is warm.

    Args:
        stream: a connected socket, or the descriptors to read from and to write to.
        place: what the back-end prepared; by default a namespace of its own as ``Place`` describes it.
        facts: in place of the place's.
        confine: in place of the place's.
    """
    place = place or Place()
    if facts or confine:
        place = replace(place, facts=facts or place.facts, confine=confine or place.confine)
    if isinstance(stream, tuple):
        reader, writer = stream
    else:
        stream.setblocking(True)
        reader = writer = stream.fileno()
    take_signals()
    init = Init(reader, writer, place)
    try:
        init.serve()
    except (Closed, frames.FrameError, OSError):
        pass  # the server went, or spoke no frames: in either case nobody is left to answer
    finally:
        init.end()


def take_signals() -> None:
    """Ignore all signals: user code may send them. SIGCHLD is kept waiting, to be asked for. Twice does nothing."""
    if _signal.getsignal(_IGNORED[0]) != _signal.SIG_IGN or _signal.getsignal(_IGNORED[-1]) != _signal.SIG_IGN:
        for number in _IGNORED:
            try:
                _signal.signal(number, _signal.SIG_IGN)
            except (OSError, ValueError):
                pass
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGCHLD,))


class Init:
    """One session.

    Args:
        reader: descriptor the server's requests come from.
        writer: descriptor for the answers.
        place: what the back-end prepared.
    """

    __slots__ = (
        "_asks", "_begun", "_cells", "_files", "_held", "_limits", "_packages", "_place", "_processes", "_reader",
        "_seed", "_tar", "_worker", "_writer",
    )  # fmt: skip

    def __init__(self, reader: int, writer: int, place: Place) -> None:
        self._reader, self._writer = reader, writer
        self._place = place
        self._limits = place.limits
        self._seed = 0
        self._begun = False
        self._packages: dict[str, str] = {}
        self._cells = 0
        self._held = b""
        self._processes = Processes(place.namespace, place.lone, place.births)
        self._files = Workspace(place.work, place.limits.workspace_bytes, place.capped, place.writable[1:])
        self._tar: TarParts | None = None
        self._worker: Worker | None = None
        self._asks: Forwarding | None = None
        self._ready()

    def serve(self) -> None:
        """Answer requests until there are no more.

        Raises:
            Closed: the server closed the stream.
            FrameError: what came is no frame.
        """
        while True:
            header, blob = self._frame()
            if header.get("op") == "told":  # the call that asked has ended meanwhile
                continue
            answer, content = self._answer(header, blob)
            self._send(frames.encode(answer, content))
            if self._worker is None:
                self._ready()

    def end(self) -> None:
        """Kill everything."""
        self._processes.end_all(self._worker.pid if self._worker else None)

    # ------------------------------------------------------------------ bytes

    def _frame(self) -> tuple[dict[str, Any], bytes]:
        json_length, blob_length = frames.lengths(self._exactly(frames.HEAD_BYTES))
        header = frames.header(self._exactly(json_length))
        return header, self._exactly(blob_length)

    def _exactly(self, count: int) -> bytes:
        held = self._held
        if len(held) < count:
            parts, left = [held], count - len(held)
            while left > 0:
                part = os.read(self._reader, _READ if left < _READ else min(left, 1 << 20))
                if not part:
                    raise Closed
                parts.append(part)
                left -= len(part)
            held = b"".join(parts)
        self._held = held[count:]
        return held[:count]

    def _send(self, data: bytes) -> None:
        sent = os.write(self._writer, data)
        if sent < len(data):
            rest = memoryview(data)[sent:]
            while rest:
                rest = rest[os.write(self._writer, rest) :]

    # ------------------------------------------------------------------ the worker

    def _ready(self) -> Worker:
        """A worker that waits, with the session's limits and seed."""
        if self._worker is None:
            self._files.sound()
            place = self._place
            asks = None if self._asks is None else self._asks.offered
            orders = Orders(self._limits, self._seed, place.work, place.scratch, place.confine, place.own_user, asks)
            before = self._processes.born()
            self._worker = Worker(
                self._reader, lambda channel, output, parent: worker.main(channel, output, parent, orders)
            )
            self._processes.begin(self._worker.pid, before)
        return self._worker

    def _drop(self, seconds: float = 1.0) -> None:
        """End the worker and all that it started."""
        if self._worker is not None:
            self._processes.end_all(self._worker.pid, seconds)
            self._worker.close()
            self._worker = None

    # ------------------------------------------------------------------ requests

    def _answer(self, header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        start = time.monotonic()
        operation = header.get("op")
        if operation == "hello":
            answer, content = self._hello(header), b""
        elif not self._begun:
            raise frames.FrameError("the first frame is hello")
        elif operation in ("run", "evaluate"):
            answer, content = self._call(header, blob)
        elif operation == "reset":
            answer, content = self._reset(header), b""
        else:
            try:
                answer, content = self._file(str(operation), header, blob)
            except (Fault, frames.FrameError) as fault:  # the numbers and names may be a policy's
                answer, content = {"status": "error", "why": str(fault)}, b""
        if operation != "export":
            self._tar = None
        why = answer.get("why")
        common = {
            "n": header.get("n"),
            "status": "ok",
            "why": None if why is None else why[: frames.MOST_WHY],
            "fresh": False,
            "milliseconds": round((time.monotonic() - start) * 1000),
            "omitted": 0,
        }
        for name in answer:
            if name != "why":
                common[name] = answer[name]
        return common, content

    def _hello(self, header: dict[str, Any]) -> dict[str, Any]:
        spec = header.get("spec")
        if type(spec) is not dict:
            raise frames.FrameError("hello has a spec")
        place = self._place
        told = spec.get("limits", {})
        if told != vars(self._limits):
            try:
                self._limits = Limits.of(told)
            except ValueError as error:
                raise frames.FrameError(str(error)) from None
            self._drop()  # the warm worker has others
        if not place.capped and _is_small(place.work, self._limits.workspace_bytes):
            self._place = place = replace(place, capped=True)
        self._files.bound(self._limits.workspace_bytes, place.capped)
        seed = _whole(spec, "seed", 0)
        if "asks" in spec:
            self._asks = Forwarding(spec["asks"], self._send, self._frame)
            self._drop()  # the warm worker cannot ask
        try:
            self._load(spec.get("packages", []))
        except ImportError as error:
            return {"status": "error", "why": str(error)}
        self._begun = True
        self._reseed(seed)
        self._ready()
        facts = {**place.facts, "platform": _MACHINE}
        asks = {} if self._asks is None else {"asks": True}
        return {"python": _PYTHON, "packages": self._packages, "facts": facts, **asks}

    def _reseed(self, seed: int) -> None:
        """Another seed, before any code has run."""
        if seed != self._seed:
            self._seed = seed
            if self._worker is not None:
                self._worker.ask(worker.SEED, 0, 0, b"%d" % seed)

    def _load(self, names: Any) -> None:
        """Import packages before the worker is forked, so that every worker has them."""
        if type(names) is not list:
            raise frames.FrameError("packages is a list of names")
        if self._place.packages is not None:
            self._packages = dict(self._place.packages)
            return
        for name in map(str, names):
            module = name.replace("-", "_")
            if module not in sys.modules:
                self._drop()  # the warm worker does not have it
                try:
                    importlib.import_module(module)
                except ImportError as error:
                    raise ImportError(f"the package {name} cannot be imported: {error}") from None
            self._packages[name] = str(getattr(sys.modules[module], "__version__", "unknown"))

    def _call(self, header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        limits = self._limits
        seconds = _positive(header, "seconds", limits.seconds)
        cpu_seconds = _positive(header, "cpu_seconds", limits.cpu_seconds)
        if seconds != limits.seconds or cpu_seconds != limits.cpu_seconds:
            limits = _timed(limits, seconds, cpu_seconds)
        if "seed" in header:
            self._reseed(_whole(header, "seed", 0))
        evaluates = header["op"] == "evaluate"
        if evaluates:
            blob = str(header.get("function")).encode("utf-8", "replace").replace(b"\0", b"") + b"\0" + blob
        else:
            self._cells += 1
        one = self._worker or self._ready()
        watched = None if self._place.capped else self._files
        if self._asks is not None:
            self._asks.number = header.get("n")
        call = Call(one, self._processes, limits, self._reader, watched, self._asks)
        ended = call.make(worker.EVALUATE if evaluates else worker.RUN, self._cells, blob)
        if ended.fresh:
            self._drop(AGAIN)
        answer: dict[str, Any] = {"status": ended.status, "why": ended.why, "fresh": ended.fresh}
        if evaluates and ended.status == "ok":
            return answer, ended.value
        answer["omitted"] = call.capture.omitted
        return answer, call.capture.kept()

    def _reset(self, header: dict[str, Any]) -> dict[str, Any]:
        self._seed = _whole(header, "seed", self._seed)
        self._drop()
        for folder in self._place.writable:
            if folder == self._place.work:
                emptying.empty(self._files.sound())
            else:
                emptying.empty_path(folder)
        self._files.full = (0, 0)
        self._cells = 0
        self._ready()
        return {"fresh": True}

    def _file(self, operation: str, header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        path = header.get("path", ".")
        if type(path) is not str:
            raise frames.FrameError("a path is a text")
        if operation == "read":
            offset = _whole(header, "offset", 0)
            limit = min(_whole(header, "limit", self._limits.read_bytes), self._limits.read_bytes, frames.MAX_BLOB)
            data, size = self._files.read(path, offset, limit)
            return {"omitted": max(0, size - offset - len(data)), "size": size}, data
        if operation == "write":
            self._files.write(path, blob)
            return {}, b""
        if operation == "list":
            data, omitted = self._files.list(path, _whole(header, "depth", 8))
            return {"omitted": omitted}, data
        if operation == "export":
            if self._tar is None or not _whole(header, "offset", 0):
                most = self._limits.workspace_bytes + 2048 * self._limits.workspace_files
                self._tar = TarParts(self._files, most)
            part, more = self._tar.next(frames.MAX_BLOB)
            return {"more": more}, part
        raise frames.FrameError(f"there is no operation {operation!r}")


@lru_cache(1)
def _timed(limits: Limits, seconds: float, cpu_seconds: float) -> Limits:
    """Limits with a call's own times: most calls have those of the call before, and making them anew takes longer."""
    return replace(limits, seconds=seconds, cpu_seconds=cpu_seconds)


def _is_small(path: str, size: int) -> bool:
    """Whether the file system at ``path`` can hold no more than ``size``, so that nobody need watch it."""
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    return 0 < found.f_blocks * found.f_frsize <= size + (size >> 2)


def _whole(header: Mapping[str, Any], name: str, default: int) -> int:
    value = header.get(name, default)
    if type(value) is not int or not 0 <= value < 2**63:
        raise frames.FrameError(f"{name} is a whole number, not {value!r}")
    return value


def _positive(header: Mapping[str, Any], name: str, default: float) -> float:
    value = header.get(name, default)
    if value is None:
        return default
    if type(value) not in (int, float) or not 0 < value < 1e6:
        raise frames.FrameError(f"{name} is a number of seconds, not {value!r}")
    return float(value)


__all__ = ["Init", "Place", "serve"]
