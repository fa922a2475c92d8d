"""Init: owns a session. It answers the server's frames one at a time, and says how each call ended.

User code may share its user id and may send it anything through the worker's channel. So: what comes from the worker
is read within limits and checked; how a call ended is what the kernel says (wait status, clocks, memory); between
calls every process but the worker is dead and the worker is stopped.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mcpgym_environments.python_sandbox.jail import emptying, frames, worker
from mcpgym_environments.python_sandbox.jail.calls import Call, Closed, Worker
from mcpgym_environments.python_sandbox.jail.files import Fault, Workspace
from mcpgym_environments.python_sandbox.jail.limits import Limits
from mcpgym_environments.python_sandbox.jail.processes import Processes
from mcpgym_environments.python_sandbox.jail.tar import TarParts


@dataclass(frozen=True)
class Place:
    """What a back-end prepared for a session.

    Args:
        work: the workspace; the code's working folder.
        writable: all folders that user code can write to; a reset empties them. The first is ``work``.
        scratch: what TMPDIR says.
        namespace: whether init is process 1 of a pid namespace of its own with /proc for it.
        lone: whether the worker can start no processes.
        own_user: whether the user id is the session's alone, so that the kernel counts its processes.
        capped: whether the kernel limits the size of ``writable`` (a tmpfs of its own); otherwise init watches it.
        limits: what holds until the first frame tells.
        confine: what the worker calls before any user code (seccomp, Landlock), if init is not confined already.
        facts: what the first answer says of the place.
        packages: versions of the packages that are loaded, where the back-end saw to that; otherwise init imports
            what the first frame names.
    """

    work: str = "/work"
    writable: tuple[str, ...] = ("/work", "/tmp", "/dev/shm")
    scratch: str = "/tmp"
    namespace: bool = True
    lone: bool = False
    own_user: bool = True
    capped: bool = True
    limits: Limits = field(default_factory=Limits)
    confine: Callable[[], None] | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    packages: Mapping[str, str] | None = None


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
    place = replace(place, facts=facts or place.facts, confine=confine or place.confine)
    if isinstance(stream, tuple):
        reader, writer = stream
    else:
        stream.setblocking(True)
        reader = writer = stream.fileno()
    _take_signals()
    init = Init(reader, writer, place)
    try:
        init.serve()
    except (Closed, frames.FrameError, OSError):
        pass  # the server went, or spoke no frames: in either case nobody is left to answer
    finally:
        init.end()


def _take_signals() -> None:
    """Ignore all signals: user code may send them. SIGCHLD is kept waiting, to be asked for."""
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})


class Init:
    """One session.

    Args:
        reader: descriptor the server's requests come from.
        writer: descriptor for the answers.
        place: what the back-end prepared.
    """

    def __init__(self, reader: int, writer: int, place: Place) -> None:
        self._reader, self._writer = reader, writer
        self._place = place
        self._limits = place.limits
        self._seed = 0
        self._begun = False
        self._packages: dict[str, str] = {}
        self._cells = 0
        self._held = bytearray()
        self._processes = Processes(place.namespace, place.lone)
        self._files = Workspace(place.work, place.limits.workspace_bytes, place.capped, place.writable[1:])
        self._tar: TarParts | None = None
        self._worker: Worker | None = None
        self._ready()

    def serve(self) -> None:
        """Answer requests until there are no more.

        Raises:
            Closed: the server closed the stream.
            FrameError: what came is no frame.
        """
        while True:
            json_length, blob_length = frames.lengths(self._exactly(frames.HEAD_BYTES))
            header = frames.header(self._exactly(json_length))
            blob = self._exactly(blob_length)
            answer, content = self._answer(header, blob)
            self._send(frames.encode({"n": header.get("n"), **answer}, content))
            self._ready()

    def end(self) -> None:
        """Kill everything."""
        self._processes.end_all(self._worker.pid if self._worker else None)

    # ------------------------------------------------------------------ bytes

    def _exactly(self, count: int) -> bytes:
        held = self._held
        while len(held) < count:
            part = os.read(self._reader, max(65_536, min(count - len(held), 1 << 20)))
            if not part:
                raise Closed
            held += part
        taken = bytes(memoryview(held)[:count])
        del held[:count]
        return taken

    def _send(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._writer, rest) :]

    # ------------------------------------------------------------------ the worker

    def _ready(self) -> None:
        """A worker that waits, with the session's limits and seed if they are known."""
        if self._worker is None:
            self._files.sound()
            place = self._place
            self._worker = Worker(
                self._reader,
                lambda channel, output, parent: worker.main(channel, output, parent, place.confine, place.own_user),
            )
            self._processes.begin(self._worker.pid)
            if self._begun:
                self._begin(self._worker)

    def _begin(self, one: Worker) -> None:
        orders = {
            "limits": vars(self._limits),
            "seed": self._seed,
            "work": self._place.work,
            "scratch": self._place.scratch,
        }
        one.ask(worker.BEGIN, 0, 0, frames.encode(orders)[frames.HEAD_BYTES :])

    def _drop(self) -> None:
        """End the worker and all that it started."""
        if self._worker is not None:
            self._processes.end_all(self._worker.pid)
            self._worker.close()
            self._worker = None

    # ------------------------------------------------------------------ requests

    def _answer(self, header: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        start = time.monotonic()
        operation = header.get("op")
        if operation != "export":
            self._tar = None
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
        milliseconds = round((time.monotonic() - start) * 1000)
        usual = {"status": "ok", "why": None, "fresh": False, "milliseconds": milliseconds, "omitted": 0}
        answer = {**usual, **answer}
        if answer["why"] is not None:
            answer["why"] = answer["why"][: frames.MOST_WHY]
        return answer, content

    def _hello(self, header: dict[str, Any]) -> dict[str, Any]:
        spec = header.get("spec")
        if type(spec) is not dict:
            raise frames.FrameError("hello has a spec")
        try:
            self._limits = Limits.of(spec.get("limits", {}))
        except ValueError as error:
            raise frames.FrameError(str(error)) from None
        capped = self._place.capped or _is_small(self._place.work, self._limits.workspace_bytes)
        self._place = replace(self._place, capped=capped)
        self._files = Workspace(self._place.work, self._limits.workspace_bytes, capped, self._place.writable[1:])
        self._seed = _whole(spec, "seed", 0)
        try:
            self._load(spec.get("packages", []))
        except ImportError as error:
            return {"status": "error", "why": str(error)}
        self._begun = True
        if self._worker is None:
            self._ready()
        else:
            self._begin(self._worker)
        facts = {**self._place.facts, "platform": platform.machine()}
        return {"python": platform.python_version(), "packages": self._packages, "facts": facts}

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
            limits = replace(limits, seconds=seconds, cpu_seconds=cpu_seconds)
        evaluates = header["op"] == "evaluate"
        if evaluates:
            blob = str(header.get("function")).encode("utf-8", "replace").replace(b"\0", b"") + b"\0" + blob
        else:
            self._cells += 1
        self._ready()
        assert self._worker is not None
        call = Call(self._worker, self._processes, limits, self._reader, None if self._place.capped else self._files)
        ended = call.make(worker.EVALUATE if evaluates else worker.RUN, self._cells, blob)
        if ended.fresh:
            self._drop()
            self._worker = None
        answer = {
            "status": ended.status,
            "why": ended.why,
            "fresh": ended.fresh,
            "omitted": call.capture.omitted,
        }
        if not evaluates:
            return answer, call.capture.kept()
        if ended.status != "ok":
            return answer, call.capture.kept()
        return {**answer, "omitted": 0}, ended.value

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
