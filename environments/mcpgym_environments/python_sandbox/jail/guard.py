"""What a plain process of this machine can be kept from where there is no boundary: harm to what is not its own.

It goes on reading what it may read. As far as the kernel has the means, it is not root if the server is, and writes to
or removes nothing outside of its own folders, signals no other processes and makes no TCP connections (Landlock).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Sequence

from mcpgym_environments.python_sandbox.jail import landlock, root, system_calls, users

CAP_DAC_READ_SEARCH = 2
_PR_SET_KEEPCAPS = 8
_AMBIENT_RAISE = 2
_STEPS = frozenset((system_calls.CAP_SETUID, system_calls.CAP_SETGID, system_calls.CAP_SETPCAP))


def become(user: int, *, reads: bool) -> None:
    """From root, be the throw-away user ``user`` for good, with no privileges.

    Args:
        user: a user id that nobody has.
        reads: whether to keep the right to read and search whatever root can, for an interpreter that lies in a folder
            of root's; it is no right to change anything.

    Raises:
        OSError: the kernel refuses a step.
    """
    kept = frozenset((CAP_DAC_READ_SEARCH,)) if reads else frozenset[int]()
    system_calls.set_capabilities(_STEPS | kept, bounding=kept)
    system_calls.prctl(_PR_SET_KEEPCAPS, 1)
    users.become(user)
    low = sum(1 << number for number in kept)
    header = (ctypes.c_uint32 * 2)(system_calls.CAPABILITY_VERSION, 0)
    if ctypes.CDLL(None).capset(header, (ctypes.c_uint32 * 6)(low, low, low, 0, 0, 0)):
        raise OSError("capset was refused")
    for number in kept:  # so that what it executes has it too
        system_calls.prctl(system_calls.PR_CAP_AMBIENT, _AMBIENT_RAISE, number)


def keep_within(folders: Sequence[str]) -> bool:
    """Leave this process nothing to write to but these folders; whether the kernel can do that."""
    system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)
    devices = [f"/dev/{name}" for name in root.DEVICES]
    with contextlib.suppress(OSError):
        if landlock.version():
            landlock.restrict(["/"], filter(os.path.exists, devices), folders)
            return True
    return False
