"""Which system calls a session may make: a list of those it may not, for x86_64 and aarch64.

A list of what is forbidden and not of what is allowed, since the code in a session is any Python with numpy and pandas
and whatever the C library chooses to call. Everything above the newest call known here does not exist
(``ENOSYS``), so a call that a later kernel adds is refused as well. The tables were taken from the kernel's own
(``asm/unistd_64.h``, ``asm-generic/unistd.h``).

The filter of the whole session goes on before its init serves; the worker, where user code runs, adds a second one,
since init must be able to set the worker's limits, which the worker must not do to init.
"""

from __future__ import annotations

import errno
import platform
from collections.abc import Iterable, Mapping

from mcpgym_environments.python_sandbox.jail import system_calls

Instruction = tuple[int, int, int, int]

NEWEST = 462
"""The highest number of a call that was looked at (``mseal``); the same on both processors."""

AUDIT = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
X32 = 0x4000_0000
"""Set in the number of a call of the x32 kind, which x86_64 kernels may accept too."""

# name: (number on x86_64, number on aarch64); -1 where a processor has no such call
NUMBERS: Mapping[str, tuple[int, int]] = {
    # mounts, roots and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "setns": (308, 268),
    "unshare": (272, 97), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "statmount": (457, 457), "listmount": (458, 458), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "swapon": (167, 224), "swapoff": (168, 225),
    "mknod": (133, -1), "mknodat": (259, 33), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "uselib": (134, -1), "ustat": (136, -1), "sysfs": (139, -1), "lookup_dcookie": (212, 18),
    # other processes' memory, and the kernel's own surfaces
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "add_key": (248, 217), "request_key": (249, 218),
    "keyctl": (250, 219), "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "create_module": (174, -1), "query_module": (178, -1), "get_kernel_syms": (177, -1), "nfsservctl": (180, 42),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "acct": (163, 89),
    "syslog": (103, 116), "iopl": (172, -1), "ioperm": (173, -1), "modify_ldt": (154, -1), "vhangup": (153, 58),
    "_sysctl": (156, -1), "remap_file_pages": (216, 234), "lsm_get_self_attr": (459, 459),
    "lsm_set_self_attr": (460, 460), "lsm_list_modules": (461, 461),
    # memory that no limit of a process sees
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "shmdt": (67, 197), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183),
    "mq_notify": (244, 184), "mq_getsetattr": (245, 185), "mlock": (149, 228), "mlock2": (325, 284),
    "mlockall": (151, 230), "mbind": (237, 235), "set_mempolicy": (238, 237), "set_mempolicy_home_node": (450, 450),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "vmsplice": (278, 75),
    # what all of the machine has only so much of
    "io_setup": (206, 0), "io_destroy": (207, 1), "io_submit": (209, 2), "io_cancel": (210, 3),
    "io_getevents": (208, 4), "io_pgetevents": (333, 292), "sync": (162, 81), "syncfs": (306, 267),
    # the network
    "socket": (41, 198), "bind": (49, 200), "listen": (50, 201), "connect": (42, 203), "accept": (43, 202),
    "accept4": (288, 242), "socketpair": (53, 199), "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    # clocks, names and who one is
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "setuid": (105, 146), "setgid": (106, 144),
    "setreuid": (113, 145), "setregid": (114, 143), "setresuid": (117, 147), "setresgid": (119, 149),
    "setfsuid": (122, 151), "setfsgid": (123, 152), "setgroups": (116, 159), "capset": (126, 91),
    "personality": (135, 92),
    # processes
    "clone": (56, 220), "clone3": (435, 435), "fork": (57, -1), "vfork": (58, -1), "execve": (59, 221),
    "execveat": (322, 281), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "prctl": (157, 167), "prlimit64": (302, 261), "setpriority": (141, 140),
    "timer_create": (222, 107), "ioprio_set": (251, 30), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "sched_setaffinity": (203, 122), "get_robust_list": (274, 100),
    # what Landlock does not look at
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, -1),
    "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54), "utime": (132, -1), "utimes": (235, -1),
    "utimensat": (280, 88), "futimesat": (261, -1), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16), "fcntl": (72, 25),
    "ioctl": (16, 29), "inotify_add_watch": (254, 27), "inotify_init": (253, -1), "inotify_init1": (294, 26),
    "truncate": (76, 45), "flock": (73, 32),
}  # fmt: skip

_SOMETIMES = (
    "socketpair sendto sendmsg sendmmsg personality clone clone3 fork vfork execve execveat kill tkill tgkill"
    " rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open pidfd_send_signal prctl prlimit64 setpriority ioprio_set"
    " timer_create sched_setscheduler sched_setparam sched_setattr sched_setaffinity get_robust_list"
    " chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes utimensat futimesat setxattr lsetxattr"
    " fsetxattr removexattr lremovexattr fremovexattr fcntl ioctl truncate flock sync syncfs"
)
SOMETIMES = frozenset(_SOMETIMES.split())
"""Calls of the table that only some filters forbid, or only with some arguments."""

NEVER = frozenset(NUMBERS) - SOMETIMES
"""Calls that no session may make."""

ABSENT = frozenset(("clone3", "memfd_create", "io_uring_setup"))
"""Calls that seem not to exist: libraries then do without."""

MEMORY_OF_OTHERS = frozenset(
    ("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise")
)
"""Calls that look into another process, or change it."""

NEW_NAMESPACES = 0x7E02_0000
CLONE_THREAD = 0x0001_0000
AF_UNIX = 1
SOCK_STREAM = 1
F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ = (8, 10, 15, 1024, 1026, 1031)
F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW = 6, 7, 37, 38
FIOSETOWN, SIOCSPGRP = 0x8901, 0x8902
PR_SCHED_CORE = 62
TIOCSTI = 0x5412
TIOCLINUX = 0x541C

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_KILL = 0x8000_0000
_ALLOW = 0x7FFF_0000


def _refuse(number: int) -> Instruction:
    return (_RETURN, 0, 0, 0x0005_0000 | number)


def _load(argument: int) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * argument)  # the low half: both processors store it first


def supported() -> bool:
    """Whether there is a table for this machine's processor."""
    return platform.machine() in AUDIT


class Rules:
    """A BPF program in the making: each rule looks at one call and refuses it or lets the next rule look.

    Args:
        machine: ``x86_64`` or ``aarch64``; this machine's unless given.

    Raises:
        OSError: there is no table for this processor.
    """

    def __init__(self, machine: str | None = None) -> None:
        machine = machine or platform.machine()
        if machine not in AUDIT:
            raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
        self._column = list(AUDIT).index(machine)
        self.program: list[Instruction] = [
            (_LOAD, 0, 0, 4),
            (_EQUAL, 1, 0, AUDIT[machine]),
            (_RETURN, 0, 0, _KILL),  # a 32-bit call
            (_LOAD, 0, 0, 0),
            (_AT_LEAST, 0, 1, NEWEST + 1),  # x32 calls too: their numbers are large
            _refuse(errno.ENOSYS),
        ]

    def refuse(self, names: Iterable[str], number: int = errno.EPERM) -> Rules:
        """Refuse these calls whatever their arguments; with ``number`` 0 they seem to succeed and do nothing."""
        for name in sorted(names):
            self.when(name, [_refuse(number)])
        return self

    def when(self, name: str, then: list[Instruction]) -> Rules:
        """For this call run ``then``, which ends in a refusal or falls through to what follows."""
        call = NUMBERS[name][self._column]
        if call >= 0:
            self.program += [(_EQUAL, 0, len(then), call), *then]
        return self

    def unless_zero(self, name: str, argument: int) -> Rules:
        """Refuse the call unless this argument's low half is 0 (the caller itself, no address)."""
        return self.when(name, [_load(argument), (_EQUAL, 1, 0, 0), _refuse(errno.EPERM), (_LOAD, 0, 0, 0)])

    def unless_null(self, name: str, argument: int) -> Rules:
        """Refuse the call unless this argument is the null pointer."""
        return self.when(
            name,
            [
                _load(argument),
                (_EQUAL, 0, 2, 0),
                (_LOAD, 0, 0, 16 + 8 * argument + 4),
                (_EQUAL, 1, 0, 0),
                _refuse(errno.EPERM),
                (_LOAD, 0, 0, 0),
            ],
        )

    def if_any_of(self, name: str, argument: int, values: Iterable[int], number: int = errno.EPERM) -> Rules:
        """Refuse the call if this argument's low half is one of the values; with ``number`` 0 it seems to succeed."""
        tests = [test for value in values for test in ((_EQUAL, 0, 1, value), _refuse(number))]
        return self.when(name, [_load(argument), *tests, (_LOAD, 0, 0, 0)])

    def unless_equal(self, name: str, argument: int, value: int, number: int = errno.EPERM) -> Rules:
        """Refuse the call unless this argument's low half has the value."""
        return self.when(name, [_load(argument), (_EQUAL, 1, 0, value), _refuse(number), (_LOAD, 0, 0, 0)])

    def if_any_bit(self, name: str, argument: int, mask: int) -> Rules:
        """Refuse the call if any of these bits is set in the argument."""
        return self.when(name, [_load(argument), (_ANY_BIT, 0, 1, mask), _refuse(errno.EPERM), (_LOAD, 0, 0, 0)])

    def unless_any_bit(self, name: str, argument: int, mask: int) -> Rules:
        """Refuse the call unless one of these bits is set in the argument."""
        return self.when(name, [_load(argument), (_ANY_BIT, 1, 0, mask), _refuse(errno.EPERM), (_LOAD, 0, 0, 0)])

    def only_stream_pairs(self) -> Rules:
        """Allow ``socketpair`` for connected Unix streams alone: a datagram can be sent anywhere."""
        stream = [
            _load(0), (_EQUAL, 1, 0, AF_UNIX), _refuse(errno.EAFNOSUPPORT),
            _load(1), (_AND, 0, 0, 0xF), (_EQUAL, 1, 0, SOCK_STREAM), _refuse(errno.EPERM), (_LOAD, 0, 0, 0),
        ]  # fmt: skip
        return self.when("socketpair", stream)

    def filter(self) -> system_calls.Filter:
        """What the kernel takes: whatever no rule refused is allowed."""
        return system_calls.Filter([*self.program, (_RETURN, 0, 0, _ALLOW)])


def session_rules(machine: str | None = None) -> Rules:
    """What the session's init and all that it starts may not do."""
    return (
        Rules(machine)
        .refuse(ABSENT, errno.ENOSYS)
        .refuse(NEVER - ABSENT)
        .if_any_bit("clone", 0, NEW_NAMESPACES)
        .unless_equal("personality", 0, 0xFFFF_FFFF)
        .if_any_of("ioctl", 1, (TIOCSTI, TIOCLINUX))
    )


def worker_rules(machine: str | None = None) -> Rules:
    """What user code may not do besides: reach for init, whose user is the same, or hold much memory of the kernel.

    All sessions read the same files, so nobody may watch them, or lock them for others to find: notifications and
    leases are refused, and a lock seems to be had and is none. Nor can it have the machine write all its files to disk.
    A timer that sends a signal of one's choice would go on between calls, and wake up what has been stopped.
    It stays open to init, which measures what it holds.
    """
    return (
        Rules(machine)
        .unless_zero("prlimit64", 0)
        .unless_zero("sched_setscheduler", 0)
        .unless_zero("sched_setparam", 0)
        .unless_zero("sched_setattr", 0)
        .unless_zero("sched_setaffinity", 0)
        .unless_zero("setpriority", 0)
        .unless_zero("setpriority", 1)
        .unless_equal("ioprio_set", 0, 1)
        .unless_zero("ioprio_set", 1)
        .if_any_of("prctl", 0, (system_calls.PR_SET_PDEATHSIG, system_calls.PR_SET_DUMPABLE, PR_SCHED_CORE))
        .if_any_of("fcntl", 1, (F_SETPIPE_SZ, F_SETOWN, F_SETOWN_EX, F_SETSIG, F_SETLEASE, F_NOTIFY))
        .if_any_of("fcntl", 1, (F_SETLK, F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW), 0)
        .refuse(("flock", "sync", "syncfs"), 0)
        .refuse(("timer_create",))
        .if_any_of("ioctl", 1, (FIOSETOWN, SIOCSPGRP))
        .only_stream_pairs()
        .unless_null("sendto", 4)
    )


def guest_rules(others: Iterable[int], groups: Iterable[int], machine: str | None = None) -> Rules:
    """What user code may not do where something else than a namespace of ours surrounds it: reach for its init.

    Args:
        others: the processes that serve it; there it could signal them, look into them and end them.
        groups: their process groups.
        machine: as for :class:`Rules`.
    """
    pids = sorted(set(others))
    everybody = (0xFFFF_FFFF, *sorted({-group & 0xFFFF_FFFF for group in groups}))
    made = worker_rules(machine).refuse(MEMORY_OF_OTHERS).if_any_of("kill", 0, (*pids, *everybody))
    for name in ("tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open"):
        made.if_any_of(name, 0, pids)
    return made


def lone_worker_rules(landlock: int, process: int, machine: str | None = None) -> Rules:
    """The same where no namespaces surround the session: one process, and nothing that Landlock does not look at.

    Changes of mode and of times seem to succeed and do nothing: programs that copy files go on.

    Args:
        landlock: the kernel's version of it; the first did not look at truncation, nor those before the sixth at
            signals.
        process: the worker's own id; before the sixth version it may send signals to that alone.
        machine: as for :class:`Rules`.
    """
    changes = ("chmod", "fchmod", "fchmodat", "fchmodat2", "utime", "utimes", "utimensat", "futimesat")
    owners = ("chown", "fchown", "lchown", "fchownat")
    attributes = ("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr")
    made = (
        worker_rules(machine)
        .refuse(changes, 0)
        .refuse(owners)
        .refuse(attributes, errno.ENOTSUP)
        .refuse(("fork", "vfork", "execve", "execveat", "sendmsg", "sendmmsg", "get_robust_list"))
        .unless_any_bit("clone", 0, CLONE_THREAD)
    )
    if landlock < 3:
        made.refuse(("truncate",))
    if landlock < 6:
        made.refuse(("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"))
        made.unless_equal("kill", 0, process).unless_equal("tgkill", 0, process)
    return made
