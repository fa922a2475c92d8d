"""What a back-end has prepared for a session, as its init is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcpgym_environments.python_sandbox.jail.limits import Limits


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
        births: with a namespace, a descriptor of ``/proc/loadavg``; see ``Processes``.
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
    births: int = -1
