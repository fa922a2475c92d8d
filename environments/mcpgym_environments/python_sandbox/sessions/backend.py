"""What a back-end must give: a byte stream to a fresh agent behind a boundary, and the means to end it.

A back-end starts the agent of ``jail/`` somewhere (a forked process, a container, a virtual machine) and hands over
one duplex byte stream to it. Everything else (frames, deadlines, checks, the pool) is the same for all of them and
lives in ``session.py``, ``exchange.py`` and ``pool.py``.

**Threads and loops.** ``start``, ``open``, ``kill`` and ``close`` of one back-end are called on one event loop that
belongs to the pool, in a thread of its own, for as long as the pool lives; a client library that is bound to a loop is
at home there. A stream is used from whatever loop an episode runs on, and from several one after another, so it must
belong to none: :class:`~mcpgym_environments.python_sandbox.sessions.streams.SocketStream` over one end of a socket
pair does, and a back-end whose provider is a client library pumps between its library and the other end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Protocol, TypeAlias, get_args

from mcpgym.errors import ConfigurationError, InfrastructureError

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
"""What ``json.dumps`` takes and gives back the same."""

Level = Literal["none", "landlock", "wasm", "namespaces", "gvisor", "vm"]
"""What keeps hostile code in, from the weakest to the strongest.

``none``: resource limits only. ``landlock``: Landlock and seccomp on the shared kernel, no namespaces. ``wasm``: a
WebAssembly runtime. ``namespaces``: the session's own user, mount, pid, network, ipc, uts and cgroup namespaces and
seccomp. ``gvisor``: a kernel of its own in user space. ``vm``: a virtual machine (also a provider's that uses one).
"""
LEVELS: tuple[Level, ...] = get_args(Level)

Status = Literal["ok", "error", "timeout", "killed", "crashed"]
"""How a call ended, as the jail's init saw it: never what user code says of itself."""
STATUSES: tuple[Status, ...] = get_args(Status)

MAX_SEED = 2**63 - 1
"""The largest seed of a session; the smallest is 0."""


def at_least(level: Level, wanted: Level) -> bool:
    """Whether ``level`` is as strong as ``wanted`` or stronger."""
    return LEVELS.index(level) >= LEVELS.index(wanted)


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What one session may use. Seconds and bytes.

    Args:
        seconds: wall time of one call; then it is interrupted, and half a second later killed.
        cpu_seconds: processor time of one call, summed over the session's processes.
        address_space: virtual memory of one process.
        memory: resident memory of the whole session.
        processes: processes and threads of the session.
        open_files: open descriptors of one process.
        file_bytes: the largest file it can write.
        workspace_bytes: all of its files together.
        workspace_files: how many files and folders it can have.
        output_bytes: what is kept of one call's output, half of it from the beginning and half from the end.
        read_bytes: the most that one reading of a file gives.

    Raises:
        ConfigurationError: a value is not positive, or is no number of its kind.
    """

    seconds: float = 10.0
    cpu_seconds: float = 10.0
    address_space: int = 2**30
    memory: int = 3 * 2**29
    processes: int = 32
    open_files: int = 128
    file_bytes: int = 2**26
    workspace_bytes: int = 2**26
    workspace_files: int = 4096
    output_bytes: int = 2**16
    read_bytes: int = 2**20

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            whole = field.name not in ("seconds", "cpu_seconds")
            if type(value) is not int and (whole or type(value) is not float):
                kind = "a whole number" if whole else "a number"
                raise ConfigurationError(f"sandbox limit {field.name}: {value!r} is not {kind}")
            if not 0 < value <= (2**62 if whole else 86_400):
                most = "2**62" if whole else "86400 (a day)"
                raise ConfigurationError(f"sandbox limit {field.name}: {value!r} does not lie above 0 and up to {most}")


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What a session is made of.

    Args:
        limits: what it may use.
        packages: distributions that are imported before the session begins and that its code can import: ``()``,
            ``("numpy",)`` or ``("numpy", "pandas")``.
        seed: seeds ``random`` and numpy's generator in the session. A back-end starts for all seeds alike; each
            session is told its own in the first frame.

    Raises:
        ConfigurationError: the seed is no whole number in 0 to ``MAX_SEED``, or a package no name.
    """

    limits: SandboxLimits = SandboxLimits()
    packages: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if type(self.seed) is not int or not 0 <= self.seed <= MAX_SEED:
            raise ConfigurationError(f"sandbox seed {self.seed!r} is no whole number in 0 to 2**63 - 1")
        if not isinstance(self.packages, tuple) or not all(type(name) is str and name for name in self.packages):
            raise ConfigurationError(f"sandbox packages {self.packages!r}: give a tuple of names of distributions")

    def as_json(self) -> dict[str, Any]:
        """What the first frame (``hello``) tells the agent: ``{"limits": {…}, "packages": […], "seed": …}``."""
        return {"limits": asdict(self.limits), "packages": list(self.packages), "seed": self.seed}


class Unavailable(ConfigurationError):
    """A back-end cannot run here; the text says why, and what would make it run.

    Args:
        reason: what is missing, found by trying.
        remedy: what a person does about it.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        whole = reason if reason.endswith((".", "?", "!")) else f"{reason}."
        super().__init__(f"{whole} {remedy}" if remedy else reason)
        self.reason = reason
        self.remedy = remedy


class SessionLost(InfrastructureError):
    """A session is gone through no act that its code is answerable for by a score: its episode has no score.

    The agent gave no answer in time, or one that is none; its process, container or connection ended; or the machine
    had no memory left for it. Never turned into a reward of 0, and never into something a policy reads.
    """


class SessionSpent(SessionLost):
    """A session was ended because a machine's memory ran out, and it was this one that had taken it.

    Else code could have an episode that goes badly end without a score, by hoarding memory.
    """


class Stream(Protocol):
    """A duplex byte stream to one agent. Belongs to no event loop; one reader and one writer at a time."""

    greeting: Mapping[str, Any] | None
    """What the agent answered to its first frame (``python``, ``packages``), if the back-end has sent that already,
    with the seed 0; the session then begins with the second. None otherwise."""

    @property
    def process(self) -> int | None:
        """The session's first process as this machine numbers it (the memory guard measures it); None elsewhere."""
        ...

    async def send(self, data: bytes, seconds: float | None = None) -> None:
        """Send all of ``data``.

        Cancelled or out of time, it may have sent a part, and the stream is good for nothing more.

        Raises:
            OSError: the other side is gone.
            TimeoutError: it took longer than ``seconds``.
        """
        ...

    async def receive(self, count: int, seconds: float | None = None) -> bytes:
        """Exactly ``count`` bytes; at most that many are held in memory beyond a fixed amount.

        Cancelled or out of time, it keeps what has come for the next call.

        Raises:
            EOFError: the other side ended before.
            OSError: the connection broke.
            TimeoutError: they did not come within ``seconds``.
        """
        ...

    def is_quiet(self) -> bool:
        """Whether the other side is there, and has sent nothing that was not received."""
        ...

    def kill(self) -> None:
        """End the session's processes without waiting, from any thread, at any time, also twice; never raises.

        ``send`` and ``receive`` of it fail from then on. What only the loop of the back-end can do is left to
        ``Backend.kill``, which the pool calls afterwards.
        """
        ...


class Backend(Protocol):
    """One way to put agents behind a boundary.

    Made, it has started nothing. One whose ``start`` makes something that ages or can die (a fork server) also has
    ``another()``, which gives a back-end like it, not started: the pool lets it take over, and closes the old one when
    its last session has ended. It may have ``slack``, the seconds that an answer may come late (2 by default), and
    ``at_once``, how many sessions may be opened at once (4).
    """

    @property
    def name(self) -> str:
        """What users write: ``namespaces``, ``docker``."""
        ...

    @property
    def level(self) -> Level:
        """What it keeps in; known at the latest after ``start``."""
        ...

    async def start(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """Make ready, prove by trying that sessions can be opened, and give the facts of this place.

        Called once, before anything else. Bounded in time by itself: nothing hangs.

        Returns:
            ``{"backend": name, "isolation": level, "python": "3.11.2", "packages": {"numpy": "2.1.0"}, …}``; the same
            for the same machine and specification.

        Raises:
            Unavailable: it cannot run here.
        """
        ...

    async def open(self, spec: SandboxSpec) -> Stream:
        """A stream to a fresh agent that waits for its first frame. Several may be asked for at once.

        Raises:
            Unavailable: it no longer runs here.
            OSError: this one did not open; another may.
        """
        ...

    async def kill(self, stream: Stream) -> None:
        """End one session whatever it does, and release what it holds. Never raises for one that is gone."""
        ...

    async def close(self) -> None:
        """End every session and whatever ``start`` began."""
        ...

    def kill_now(self) -> None:
        """The same without an event loop, from any thread, in well under a second: the interpreter is about to exit."""
        ...
