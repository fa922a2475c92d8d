"""The system calls that Python's standard library has no function for, and their constants.

All of them raise ``OSError`` with the call's name when the kernel refuses. Linux only; numbers are those of x86_64 and
aarch64, which agree on every call that is made by its number here.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Sequence

CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

SECCOMP_MODE_FILTER = 2
ADDR_NO_RANDOMIZE = 0x0004_0000
CAP_CHOWN = 0
CAP_DAC_OVERRIDE = 1
CAP_FOWNER = 3
CAP_KILL = 5
CAP_SETGID = 6
CAP_SETUID = 7
CAP_SETPCAP = 8
CAP_SYS_ADMIN = 21

CAPABILITY_VERSION = 0x2008_0522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _checked(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def prctl(option: int, *values: int) -> int:
    """``prctl(2)``; missing arguments are 0."""
    given = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return _checked(f"prctl {option}", int(_libc.prctl(option, *given)))


def unshare(flags: int) -> None:
    """``unshare(2)``: leave namespaces for new ones."""
    _checked("unshare", int(_libc.unshare(flags)))


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """``mount(2)``."""
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None
    )
    _checked(f"mount {kind or source} on {target}", int(result))


def unmount(target: str) -> None:
    """``umount2(2)``, at once, whatever uses it."""
    _checked(f"unmount {target}", int(_libc.umount2(target.encode(), MNT_DETACH)))


def pivot_root(new: str, old: str) -> None:
    """``pivot_root(2)``: the file tree at ``new`` becomes the root, and the former root moves to ``old``."""
    _checked("pivot_root", int(_libc.pivot_root(new.encode(), old.encode())))


def personality(flags: int) -> int:
    """``personality(2)``: set it and give the former one."""
    return _checked("personality", int(_libc.personality(ctypes.c_ulong(flags))))


def system_call(name: str, number: int, *arguments: int | ctypes.Array[ctypes.c_char] | ctypes.Structure | None) -> int:
    """Any call by its number; buffers and structures are passed by address."""
    given = [
        ctypes.c_long(argument) if isinstance(argument, int) else argument and ctypes.byref(argument)
        for argument in arguments
    ]
    return _checked(name, int(_libc.syscall(ctypes.c_long(number), *given)))


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


class Filter:
    """A BPF program in the form in which the kernel takes it; making one takes longer than installing it."""

    def __init__(self, program: Sequence[tuple[int, int, int, int]]) -> None:
        self._instructions = (_Instruction * len(program))(*(_Instruction(*one) for one in program))
        self._held = _Program(len(program), ctypes.cast(self._instructions, ctypes.POINTER(_Instruction)))

    def install(self) -> None:
        """Have the kernel ask it about every later call of this process and of what it forks; needs no_new_privs."""
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(self._held))


def set_capabilities(kept: frozenset[int] = frozenset(), bounding: frozenset[int] | None = None) -> None:
    """Keep only these capabilities; after a later exec there can be only those of ``bounding`` (the same by default).

    The bounding set is left as it is where the process may not change it (without CAP_SETPCAP).
    """
    wanted = kept if bounding is None else bounding
    for number in range(64):
        try:
            if number not in wanted:
                prctl(PR_CAPBSET_DROP, number)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.EPERM):  # there are no higher ones, or it may not
                break
            raise
    mask = sum(1 << number for number in kept)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    low, high = mask & 0xFFFF_FFFF, mask >> 32
    data = (ctypes.c_uint32 * 6)(low, low, 0, high, high, 0)
    _checked("capset", int(_libc.capset(header, data)))


def death_signal(number: int) -> None:
    """Get signal ``number`` when the parent thread ends; forgotten at every change of credentials."""
    prctl(PR_SET_PDEATHSIG, number)
