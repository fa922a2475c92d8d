"""A session without namespaces, where the kernel gives none: one process, Landlock and stricter system calls.

Its worker cannot fork or execute, so that nothing of it can outlive its init; init dies with the fork server, and the
fork server with the server. It sees the read-only tree and a folder of its own; ``/proc`` is hidden from it, and open
to its init, which watches it. What that leaves open, compared with namespaces: it can ask whether a path exists, and
its files are bounded by watching.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from mcpgym_environments.python_sandbox.jail import folders, hardening, landlock, root, seccomp, system_calls, users
from mcpgym_environments.python_sandbox.jail.limits import Limits
from mcpgym_environments.python_sandbox.jail.place import Place
from mcpgym_environments.python_sandbox.jail.refusal import Refused

KEPT = frozenset(
    (
        system_calls.CAP_SETUID,
        system_calls.CAP_SETGID,
        system_calls.CAP_SETPCAP,
        system_calls.CAP_CHOWN,
        system_calls.CAP_DAC_OVERRIDE,
        system_calls.CAP_FOWNER,
        system_calls.CAP_KILL,
    )
)
"""What a root fork server goes on with: to become other users, and to make and remove their folders and end
their workers."""
DEVICES = tuple(f"/dev/{name}" for name in root.DEVICES)
FOLDERS = ()
"""Each session has its own."""
_limits: list[Limits] = []
_numbers = itertools.count()
_sessions: dict[int, str] = {}
_removers: set[int] = set()


def check() -> None:
    """Whether Landlock can be used here.

    Raises:
        Refused: with the reason and the remedy.
    """
    release = os.uname().release
    try:
        have = landlock.version()
    except OSError as error:
        raise Refused(
            f"a container's seccomp profile forbids Landlock ({os.strerror(error.errno or 0)})",
            "Use a container engine of 2022 or later, or run the container with --security-opt seccomp=unconfined.",
        ) from None
    if have < 1:
        raise Refused(
            f"this kernel ({release}) has no Landlock, or it is not among the security modules in use",
            "Use Linux 5.13 or later and boot it with landlock in its lsm= list.",
        )


def begin(order: Mapping[str, Any]) -> None:
    """Make ready what all sessions use, and adopt the workers of inits that end."""
    hardening.prepare()
    _lone_worker()
    _limits[:] = [Limits.of(order["limits"])]
    system_calls.prctl(system_calls.PR_SET_CHILD_SUBREAPER, 1)


def before(order: Mapping[str, Any], user: int | None) -> str:
    """How the name of the session's folder begins. The rest only the session itself knows.

    Anyone may ask whether a path exists, and what the fork server has in memory its later sessions have too.
    """
    return f"{order['folder']}/sessions/{next(_numbers)}-"


def began(child: int, folder: str) -> None:
    """Remember how its folder's name begins."""
    _sessions[child] = folder


def ended(child: int) -> None:
    """Remove the folder of a session whose init has ended, in a process that does nothing else."""
    _removers.discard(child)
    folder = _sessions.pop(child, None)
    if folder is None:
        return
    _end_orphans()
    remover = os.fork()
    if remover == 0:
        with contextlib.suppress(BaseException):
            place, _, begins = folder.rpartition("/")
            for name in os.listdir(place):
                if name.startswith(begins):
                    folders.remove(f"{place}/{name}")
        os._exit(0)  # whatever is left goes with the fork server's own folder
    _removers.add(remover)


def _make_folder(begins: str, user: int | None) -> str:
    """The session's folder, made by the session before it is the user's, by a name that no other can guess."""
    folder = begins + os.urandom(16).hex()
    for name in ("", "/work", "/tmp"):
        os.mkdir(folder + name, 0o700)
    if user is not None:
        for name in ("/work", "/tmp", ""):
            os.chown(folder + name, user, user)
    return folder


def _end_orphans() -> None:
    """Kill the workers whose inits have ended and wait for them: nobody may write while a folder is removed."""
    me = os.getpid()
    for child in _children(me):
        if child not in _sessions and child not in _removers:
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)


def _children(me: int) -> list[int]:
    with contextlib.suppress(OSError), open(f"/proc/{me}/task/{me}/children", "rb") as file:
        return [int(number) for number in file.read().split()]
    found = []
    for name in os.listdir("/proc"):  # a kernel without lists of children
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{int(name)}/stat", "rb") as file:
            if int(file.read().rpartition(b")")[2].split()[1]) == me:
                found.append(int(name))
    return found


def become_session(
    stream: int,
    order: Mapping[str, Any],
    folder: str,
    user: int | None,
    serve: Callable[[int, int, Any], None],
) -> None:
    """Be the session in a process just forked; ``serve`` is called in its init, confined, and this does not return.

    Raises:
        OSError: the kernel refuses a step; the text names it.
    """
    system_calls.set_capabilities(KEPT if user is not None else frozenset(), bounding=frozenset())
    folder = _make_folder(folder, user)
    users.become(user)
    system_calls.death_signal(signal.SIGKILL)
    if os.getppid() != order["fork_server"]:
        os._exit(1)  # it ended before it could be told to take us with it
    work, scratch = f"{folder}/work", f"{folder}/tmp"
    os.chdir(work)
    hardening.only(stream)
    this = os.pidfd_open(os.getpid())
    system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)
    tree = f"{order['folder']}/tree"
    landlock.restrict([tree, "/proc"], DEVICES, [work, scratch])
    hardening.confine()
    place = Place(
        work=work,
        writable=(work, scratch),
        scratch=scratch,
        namespace=False,
        lone=True,
        own_user=user is not None,
        capped=False,
        limits=_limits[0],
        confine=lambda: _confine_worker(tree, work, scratch),
        facts={"isolation": "landlock"},
    )
    serve(hardening.STREAM, this, place)


@cache
def _lone_worker_of(process: int) -> system_calls.Filter:
    return seccomp.lone_worker_rules(landlock.version(), process).filter()


def _lone_worker() -> system_calls.Filter:
    """The filter of a worker; where Landlock leaves signals to it, each worker has its own."""
    return _lone_worker_of(0 if landlock.version() >= landlock.SIGNALS_SCOPED else os.getpid())


def _confine_worker(tree: str, work: str, scratch: str) -> None:
    """What init may, less /proc and init itself."""
    landlock.restrict([tree], DEVICES, [work, scratch])
    system_calls.prctl(system_calls.PR_SET_DUMPABLE, 1)
    _lone_worker().install()
