"""A session of its own namespaces: how a process leaves everything it could reach, step by step.

Twice the same kind of step is taken. The *fork server* leaves the machine once: :func:`enter` gives it namespaces and
:func:`take_root` a root that is a read-only tree in memory. Each *session* then leaves the fork server, in
:func:`become_session`: a throw-away user if the server is root, namespaces inside a user namespace of its own, its own
``/proc`` and a workspace of bounded size (:func:`furnish`), and no privileges (``hardening``).
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from mcpgym_environments.python_sandbox.jail import hardening, root, system_calls, users
from mcpgym_environments.python_sandbox.jail.forking import fork
from mcpgym_environments.python_sandbox.jail.limits import Limits
from mcpgym_environments.python_sandbox.jail.place import Place
from mcpgym_environments.python_sandbox.jail.refusal import Refused
from mcpgym_environments.python_sandbox.jail.system_calls import (
    CLONE_NEWCGROUP,
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    mount,
)

ALL = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP
INSIDE = 1000
"""The user and group id that a session has in its own eyes."""
OLD = "/run"
"""Where the machine's files are while the tree is built."""
LOCKED = MS_NOSUID | MS_NODEV
PLENTY = 65536
"""User namespaces that are enough for any server; a machine's usual limit lies near it."""
FOLDERS = ("/work", "/tmp")
"""A session's workspace, and its folder for temporary files."""
_made: list[tuple[int, Place]] = []
"""What every session is given: the fork server's ``/proc/loadavg``, since a session's own ``/proc`` has none (its last
word is about the namespace of who reads it), and the place that all are."""
KEPT = frozenset((system_calls.CAP_SETUID, system_calls.CAP_SETGID))
"""What a root fork server goes on with: it only has to become other users."""


def enter(throw_away: tuple[int, int] | None) -> None:
    """Leave the machine's namespaces; the first process forked afterwards is process 1 of the new ones.

    Args:
        throw_away: the user ids that a root server's sessions get; None for an ordinary user.

    Raises:
        Refused: with the reason and what would allow it.
    """
    user, group = os.getuid(), os.getgid()
    try:
        if throw_away is None:
            system_calls.unshare(ALL | CLONE_NEWUSER)
            map_user(user, group)
        elif users.capable(system_calls.CAP_SYS_ADMIN):
            system_calls.unshare(ALL)
        else:
            _enter_as_root_of_a_container(*throw_away)
    except OSError as error:
        raise _no_namespaces(error, as_root=throw_away is not None) from None


def _enter_as_root_of_a_container(first: int, count: int) -> None:
    """Root without CAP_SYS_ADMIN needs a user namespace, in which it stays root and has the throw-away users too."""
    process = os.getpid()
    ready, made = os.pipe()
    helper = os.fork()
    if helper == 0:  # only who is outside may map more than itself
        try:
            os.close(made)
            if os.read(ready, 1):
                for name in ("uid_map", "gid_map"):
                    _write(f"/proc/{process}/{name}", f"0 0 1\n{first} {first} {count}\n")
                _write(f"/proc/{process}/projid_map", "0 0 1")
                os._exit(0)
        finally:
            os._exit(1)
    os.close(ready)
    try:
        system_calls.unshare(ALL | CLONE_NEWUSER)
        os.write(made, b"+")
    finally:
        os.close(made)
        status = os.waitpid(helper, 0)[1]
    if status:
        raise OSError(errno.EPERM, "the users of the container could not be mapped")


def map_user(user: int, group: int) -> None:
    """Be ``INSIDE`` in the user namespace just made, whoever one is outside."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{INSIDE} {user} 1"),
        ("gid_map", f"{INSIDE} {group} 1"),
        ("projid_map", "0 0 1"),  # it can be written once, and by anyone
    ):
        _write(f"/proc/self/{name}", text)


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def take_root(made: root.Plan) -> None:
    """Build the tree in memory, make it the root, and let go of the machine's files.

    Raises:
        Refused: the kernel or a container engine forbids a mount.
        OSError: a file could not be copied, or there is no memory for it.
    """
    # the mount only has to be somewhere, and this folder is certainly there
    point = os.path.dirname(os.path.realpath(os.__file__))
    size = made.size + (len(made.copies) + 512) * 4096
    nodes = 4 * len(made.copies) + 4096
    try:
        mount("none", "/", flags=MS_REC | MS_PRIVATE)
        mount("tmpfs", point, "tmpfs", LOCKED, f"size={size},nr_inodes={nodes},mode=755")
    except OSError as error:
        raise Refused(
            f"namespaces can be made, but nothing can be mounted in them ({os.strerror(error.errno or 0)})",
            "A container profile or security module (AppArmor, SELinux) forbids it: run the container with"
            " --security-opt seccomp=unconfined --security-opt apparmor=unconfined, or let the sandbox use Landlock.",
        ) from None
    os.chdir(point)
    os.mkdir("run", 0o755)
    system_calls.pivot_root(".", "run")
    os.chdir("/")
    root.build(made, "/", OLD)
    os.makedirs("/dev", exist_ok=True)
    for name in root.DEVICES:
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o666))
        mount(f"{OLD}/dev/{name}", f"/dev/{name}", flags=MS_BIND)
    fix_devices()
    try:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError as error:
        raise Refused(
            f"a fresh /proc cannot be mounted ({os.strerror(error.errno or 0)}): a container engine hides parts of it",
            "Run the container with --security-opt systempaths=unconfined (Docker) or --security-opt unmask=ALL"
            " (Podman), or let the sandbox use Landlock.",
        ) from None
    system_calls.unmount(OLD)
    mount("none", "/", flags=MS_REMOUNT | MS_RDONLY | LOCKED)  # the file system itself, for every mount of it


def fix_devices() -> None:
    """Make the devices' files read-only, of which all sessions see the times that who may write there can set.

    What is written to the devices goes there as before.
    """
    for name in root.DEVICES:
        mount("none", f"/dev/{name}", flags=MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC)


def begin(order: Mapping[str, Any]) -> None:
    """Make ready what all sessions use."""
    hardening.prepare()
    births = os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
    place = Place(
        limits=Limits.of(order["limits"]),
        confine=hardening.harden_worker,
        facts={"isolation": "namespaces"},
        births=hardening.BIRTHS,
    )
    _made[:] = [(births, place)]


def before(order: Mapping[str, Any], user: int | None) -> str:
    """Nothing to make before a fork: the session's files are in memory of its own."""
    return ""


def began(child: int, folder: str) -> None:
    """Nothing to remember: the kernel removes all that a session had."""


def ended(child: int) -> None:
    """Nothing to remove."""


def become_session(
    stream: int,
    order: Mapping[str, Any],
    folder: str,
    user: int | None,
    serve: Callable[[int, int, Any], None],
) -> None:
    """Be the session in a process just forked; ``serve`` is called in its init, confined, and this does not return.

    Raises:
        Refused: the kernel does not let sessions make namespaces.
        OSError: it refuses another step; the text names it.
    """
    users.become(user)
    inner, group = os.getuid(), os.getgid()
    try:
        system_calls.unshare(CLONE_NEWUSER | ALL)
        map_user(inner, group)
    except OSError as error:
        raise _no_namespaces(error, as_root=False) from None
    if fork():
        os._exit(0)  # the child is process 1 of the new namespaces, and the fork server its parent
    furnish(order["limits"]["workspace_bytes"], order["limits"]["workspace_files"])
    births, place = _made[0]
    hardening.only(stream, births)
    this = os.pidfd_open(os.getpid())
    hardening.confine()
    serve(hardening.STREAM, this, place)


def furnish(bytes_: int, files: int) -> None:
    """Mount what is the session's own: ``/proc``, and one bounded file system for ``/work``, ``/tmp`` and ``/dev/shm``.

    Raises:
        OSError: a mount was refused; its text names it.
    """
    flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY  # or who holds most could have others ended (oom_score_adj)
    try:
        mount("proc", "/proc", "proc", flags, "subset=pid")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        mount("proc", "/proc", "proc", flags)  # before Linux 5.8
    mount("tmpfs", OLD, "tmpfs", LOCKED, f"size={bytes_},nr_inodes={files},mode=755")
    for name, place, mode in (("work", "/work", 0o755), ("tmp", "/tmp", 0o1777), ("shm", "/dev/shm", 0o1777)):
        os.mkdir(f"{OLD}/{name}")
        os.chmod(f"{OLD}/{name}", mode)
        mount(f"{OLD}/{name}", place, flags=MS_BIND)
    system_calls.unmount(OLD)
    mount("none", "/", flags=MS_REMOUNT | MS_BIND | MS_RDONLY | LOCKED)
    socket.sethostname("sandbox")
    os.chdir("/work")


def _setting(name: str) -> str | None:
    try:
        with open(f"/proc/sys/{name}", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def _no_namespaces(error: OSError, as_root: bool) -> Refused:
    """Why ``unshare`` failed, from the settings that can make it fail."""
    why = os.strerror(error.errno or 0)
    if error.errno == errno.ENOSPC or _setting("user/max_user_namespaces") == "0":
        limit = _setting("user/max_user_namespaces") or "unknown"
        plenty = limit.isdecimal() and int(limit) >= PLENTY
        return Refused(
            f"user namespaces are used up or forbidden here ({why}; user.max_user_namespaces = {limit})",
            "What this container or namespace lies in has a limit of its own: raise user.max_user_namespaces there."
            if plenty
            else f"Raise it with: sudo sysctl -w user.max_user_namespaces={PLENTY}",
        )
    if error.errno == errno.EINVAL:
        return Refused(f"this kernel ({os.uname().release}) has no user namespaces ({why})", "Use Linux 5.6 or later.")
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return Refused(
            f"unprivileged user namespaces are switched off ({why}; kernel.unprivileged_userns_clone = 0)",
            "Allow them with: sudo sysctl -w kernel.unprivileged_userns_clone=1",
        )
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return Refused(
            f"AppArmor forbids unprivileged user namespaces ({why}; kernel.apparmor_restrict_unprivileged_userns = 1)",
            "Allow them with: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        )
    who = "root" if as_root else "this user"
    return Refused(
        f"the kernel does not let {who} make namespaces ({why}): most likely a container's seccomp profile or a chroot",
        "Run the container with --security-opt seccomp=unconfined --security-opt systempaths=unconfined, or let the"
        " sandbox use Landlock.",
    )
