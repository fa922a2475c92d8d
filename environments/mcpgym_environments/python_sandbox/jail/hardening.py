"""What is taken from a session's processes for good, whatever tier they run on: privileges, dumps, system calls."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
from collections.abc import Callable, Sequence
from functools import cache

from mcpgym_environments.python_sandbox.jail import seccomp, system_calls
from mcpgym_environments.python_sandbox.jail.limits import NO_CORE

SECURE_BITS = 0xEF
"""NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, locked, and KEEP_CAPS locked off: user 0 is a user like others."""


@cache
def _session() -> system_calls.Filter:
    return seccomp.session_rules().filter()


@cache
def _worker() -> system_calls.Filter:
    return seccomp.worker_rules().filter()


def prepare() -> None:
    """Make the filters, in the fork server: its sessions only install them."""
    _session()
    _worker()


STREAM, BIRTHS = 3, 4
"""A session's descriptors beside the three standard ones."""


def only(stream: int, births: int = -1) -> None:
    """Close every descriptor but the stream (``STREAM`` from now on), the three standard ones, and ``births`` if given.

    All terminals are left as well.
    """
    if births >= 0:
        kept = fcntl.fcntl(births, fcntl.F_DUPFD_CLOEXEC, BIRTHS + 1)
    if stream != STREAM:
        os.dup2(stream, STREAM, False)
    if births >= 0:
        os.dup2(kept, BIRTHS, False)
    os.closerange(BIRTHS + (births >= 0), 65_536)
    os.setsid()


def confine() -> None:
    """For the session's init, which user code is forked from: no capabilities, none to gain, and its system calls.

    Raises:
        OSError: the kernel refuses a step; its text names it.
    """
    for kind in ("RLIMIT_MEMLOCK", "RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_RTPRIO"):
        resource.setrlimit(getattr(resource, kind), (0, 0))
    with contextlib.suppress(ValueError, OSError):  # the server's own may be 0
        resource.setrlimit(resource.RLIMIT_CORE, (NO_CORE, NO_CORE))
    system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)
    with contextlib.suppress(OSError):  # without CAP_SETPCAP there is nothing to lock away
        system_calls.prctl(system_calls.PR_SET_SECUREBITS, SECURE_BITS)
    with contextlib.suppress(OSError):  # before Linux 4.3
        system_calls.prctl(system_calls.PR_CAP_AMBIENT, system_calls.PR_CAP_AMBIENT_CLEAR_ALL)
    system_calls.set_capabilities()
    _session().install()
    system_calls.prctl(system_calls.PR_SET_DUMPABLE, 0)


def shield(others: Sequence[int]) -> Callable[[], None]:
    """For an agent in a place that somebody else made: keep its worker from these processes, as far as the kernel can.

    Args:
        others: this process and those that carry its frames.

    Returns:
        What the worker calls before any user code. It gains no privileges either: ``sudo`` has no effect.
    """
    groups = []
    for process in others:
        with contextlib.suppress(OSError):
            groups.append(os.getpgid(process))
    made = None
    with contextlib.suppress(OSError):  # no table for this processor
        made = seccomp.guest_rules(others, groups).filter()
    with contextlib.suppress(OSError):
        system_calls.prctl(system_calls.PR_SET_DUMPABLE, 0)

    def confine() -> None:
        with contextlib.suppress(OSError):  # a kernel without filters, or one that is only played
            system_calls.prctl(system_calls.PR_SET_DUMPABLE, 1)
            system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)
            if made is not None:
                made.install()

    return confine


def harden_worker() -> None:
    """For the worker, the last thing before user code: it may touch itself only, and look at itself."""
    system_calls.prctl(system_calls.PR_SET_DUMPABLE, 1)
    _worker().install()
