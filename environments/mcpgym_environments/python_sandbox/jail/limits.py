"""What a session may use, its environment variables, and how a process is held to them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

if sys.platform != "win32":
    import resource

ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "MALLOC_ARENA_MAX": "1",
}
"""All that the code of a session finds in its environment, but for HOME (the workspace) and TMPDIR. An interpreter
must be started with it: the seed of hashes, the threads of BLAS and how many heaps the C library makes are read only
then. (By default each thread has a heap of its own, of 64 MB of addresses: twenty threads would use up a session's.)"""


NO_CORE = 1
"""The limit of a core dump's bytes for there to be none. With 0 the kernel would still start a program of the machine's
that is named in ``core_pattern``, as root, and hand it the memory of whatever crashed; 1 is its mark for "do not"."""
PENDING_SIGNALS = 256
"""How many signals may wait and timers be set: the kernel counts them per user, who may be the server's."""


_FIXED: list[tuple[int, int]] = []
_CHOSEN: list[tuple[int, str]] = []
if sys.platform != "win32":
    for _name, _value in (
        ("STACK", 8 << 20),
        ("CORE", NO_CORE),
        ("MEMLOCK", 0),
        ("MSGQUEUE", 0),
        ("RTPRIO", 0),
        ("NICE", 0),
        ("SIGPENDING", PENDING_SIGNALS),
    ):
        if hasattr(resource, f"RLIMIT_{_name}"):
            _FIXED.append((getattr(resource, f"RLIMIT_{_name}"), _value))
    _CHOSEN += [
        (resource.RLIMIT_AS, "address_space"),
        (resource.RLIMIT_NOFILE, "open_files"),
        (resource.RLIMIT_FSIZE, "file_bytes"),
    ]


@dataclass(frozen=True)
class Limits:
    """The same limits as the server's ``SandboxLimits``, as the first frame tells them."""

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

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Limits:
        """Limits from JSON; what is missing is the default, what is unknown is passed over.

        Raises:
            ValueError: a value is not a positive number.
        """
        known = {field.name: values[field.name] for field in fields(cls) if field.name in values}
        for name, value in known.items():
            if type(value) not in (int, float) or not 0 < value < 2**63:
                raise ValueError(f"limit {name}: {value!r} is not a positive number")
        return cls(**known)


def hold(limits: Limits, *, count_processes: bool) -> None:
    """Put this process and all it will start under ``limits``, for good.

    Args:
        limits: what it may use.
        count_processes: whether the user id is the session's own; otherwise the kernel would count others' processes.
    """
    if sys.platform == "win32":
        return
    for kind, name in _CHOSEN:
        _limit(kind, int(getattr(limits, name)))
    for kind, value in _FIXED:
        _limit(kind, value)
    if count_processes:
        _limit(resource.RLIMIT_NPROC, int(limits.processes))


def _limit(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    if hard != resource.RLIM_INFINITY and hard < value:
        value = hard
    try:
        resource.setrlimit(kind, (value, value))
    except (OSError, ValueError):  # macOS refuses RLIMIT_AS
        pass


def environment(work: str, scratch: str) -> dict[str, str]:
    """All environment variables of a session whose files lie in ``work`` and temporary ones in ``scratch``."""
    return {**ENVIRONMENT, "HOME": work, "TMPDIR": scratch, "PWD": work}


def take_environment(work: str, scratch: str) -> None:
    """Replace this process's environment variables by the session's."""
    wanted = environment(work, scratch)
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    os.environ.update(wanted)
