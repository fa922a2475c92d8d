"""Landlock: a process gives up, for good, all files but a few and every process but its own.

Works for any user and needs no namespaces. What it lets through (looking at names and modes, signals before its sixth
version) the filters of ``seccomp.py`` close.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable

from mcpgym_environments.python_sandbox.jail import system_calls

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
O_PATH = 0o10000000

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
FIRST_RIGHTS = (1 << 13) - 1
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
TCP = 3
SCOPES = 3
"""Abstract Unix sockets and signals."""

READABLE = EXECUTE | READ_FILE | READ_DIR
DEVICE = WRITE_FILE | READ_FILE
SIGNALS_SCOPED = 6
"""The version since which signals stay inside."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Which version of Landlock the kernel has; 0 for none.

    Raises:
        OSError: a filter of system calls forbids to ask.
    """
    try:
        return system_calls.system_call("landlock_create_ruleset", CREATE_RULESET, None, 0, 1)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EOPNOTSUPP):
            return 0
        raise


def restrict(readable: Iterable[str], devices: Iterable[str], writable: Iterable[str]) -> None:
    """Leave this process the files beneath ``readable`` and ``writable`` and these ``devices``, and no others.

    It and what it forks can no longer send signals out or connect to what lies outside, where the kernel can tell. Done
    again, it makes a domain inside the one around, whose processes are then outside as well.
    Needs no_new_privs.

    Raises:
        OSError: the kernel refuses; its text names the step.
    """
    have = version()
    rights = FIRST_RIGHTS
    rights |= REFER if have >= 2 else 0
    rights |= TRUNCATE if have >= 3 else 0
    rights |= IOCTL_DEV if have >= 5 else 0
    ruleset = _make(rights, have)
    try:
        for paths, allowed in ((readable, READABLE), (devices, DEVICE), (writable, rights & ~(EXECUTE | IOCTL_DEV))):
            for path in paths:
                _allow(ruleset, path, allowed & rights)
        system_calls.system_call("landlock_restrict_self", RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _make(rights: int, have: int) -> int:
    wanted = _Ruleset(rights, TCP if have >= 4 else 0, SCOPES if have >= SIGNALS_SCOPED else 0)
    size = 24 if have >= SIGNALS_SCOPED else 16 if have >= 4 else 8
    return system_calls.system_call("landlock_create_ruleset", CREATE_RULESET, wanted, size, 0)


def _allow(ruleset: int, path: str, allowed: int) -> None:
    beneath = os.open(path, O_PATH | os.O_CLOEXEC)
    try:
        rule = _Beneath(allowed, beneath)
        system_calls.system_call(f"landlock_add_rule {path}", ADD_RULE, ruleset, 1, rule, 0)
    finally:
        os.close(beneath)
