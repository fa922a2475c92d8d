"""Starts a fork server and outlives it: run by path, in an interpreter of its own, by the server.

It reads one order (JSON) from the control socket, finds the files, makes the boundary, starts the fork server inside
and waits. When the server closes that socket, everything is killed, whatever the fork server is busy with; when the
server ends, however it ends, a pidfd of it says so, and the same is done; when this process ends, the kernel kills the
fork server, which is process 1 of its namespaces, and with it every session. (A parent death signal would not do for
the server: it fires when the *thread* ends that started us.)
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
import types
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from mcpgym_environments.python_sandbox.jail import root

HERE = os.path.dirname(os.path.abspath(__file__))


def stand_in_for_parents() -> None:
    """Have this package without its parents, which need what an isolated interpreter has not."""
    package = os.path.dirname(HERE)
    for name, path in (
        ("mcpgym_environments", os.path.dirname(package)),
        ("mcpgym_environments.python_sandbox", package),
    ):
        module = types.ModuleType(name)
        module.__path__ = [path]
        sys.modules[name] = module


class Stopped(Exception):
    """The server wants this no more: a signal says so, since what is being made may take a while."""


def _stop(*_: object) -> NoReturn:
    raise Stopped


def main(control: socket.socket, server: int) -> int:
    """Carry out the order on ``control``; ``server`` is a pidfd of the process that gave it."""
    from mcpgym_environments.python_sandbox.jail import allow, folders, root, seccomp, system_calls, users
    from mcpgym_environments.python_sandbox.jail.refusal import Refused

    signal.signal(signal.SIGTERM, _stop)
    order = json.loads(control.recv(1 << 20))
    folder = ""
    try:
        if not seccomp.supported():
            raise Refused(
                f"this machine's processor ({os.uname().machine}) is neither x86_64 nor aarch64: its system calls are"
                " not known",
                'Use backend="docker".',
            )
        with contextlib.suppress(OSError):  # a container's profile may forbid it
            system_calls.personality(system_calls.ADDR_NO_RANDOMIZE)  # so that reprs with addresses repeat
        distributions = allow.allowed(order["packages"], order["folders"])
        made = root.plan(distributions)
        order = {
            **order,
            "folders": [],
            "modules": distributions.modules,
            "versions": distributions.versions,
            "users": users.throw_away(),
        }
        if order["tier"] == "alone":
            from mcpgym_environments.python_sandbox.jail import alone

            alone.check()
            folder, _ = folders.make(made.size, others=order["users"] is not None)
            root.build(made, f"{folder}/tree")
            order["folder"] = folder
        else:
            from mcpgym_environments.python_sandbox.jail import namespaces

            namespaces.enter(order["users"])
        this = os.pidfd_open(os.getpid())
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            _inside(control, server, this, made, order)
    except Exception as error:
        with contextlib.suppress(OSError):
            control.send(json.dumps(_told(error)).encode())
        if folder:
            folders.remove(folder)
        return 1
    watched = select.poll()
    watched.register(control, select.POLLRDHUP)
    for descriptor in (server, os.pidfd_open(child)):
        watched.register(descriptor, select.POLLIN)
    with contextlib.suppress(Stopped):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        watched.poll()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if folder:
        _remove(folder)
    return 0


def _remove(folder: str) -> None:
    """Remove the folder of all sessions: they are being killed, and may write in it for a moment more."""
    from mcpgym_environments.python_sandbox.jail import folders

    for _ in range(100):
        try:
            folders.remove(folder)
            return
        except OSError:
            time.sleep(0.02)


def _inside(control: socket.socket, server: int, parent: int, made: root.Plan, order: dict[str, Any]) -> NoReturn:
    """Become the fork server: process 1 of the new namespaces, if there are any."""
    from mcpgym_environments.python_sandbox.jail import namespaces, root, system_calls
    from mcpgym_environments.python_sandbox.jail.limits import ENVIRONMENT

    try:
        system_calls.death_signal(signal.SIGKILL)
        if select.select([parent], [], [], 0)[0]:
            os._exit(1)  # it had ended before
        os.close(parent)
        environment = dict(ENVIRONMENT)
        if order["tier"] == "alone":
            tree = f"{order['folder']}/tree/"
            environment["LD_LIBRARY_PATH"] = f"{tree}usr/lib"
            order["fork_server"] = os.getpid()
        else:
            tree = "/"
            namespaces.take_root(made)
            socket.sethostname("sandbox")
        orders, write = os.pipe()  # not an argument: a session can read those of the process it was forked from
        os.write(write, json.dumps(order).encode())
        os.close(write)
        for descriptor in (control.fileno(), server, orders):
            os.set_inheritable(descriptor, True)
        program = [f"{tree}{root.PYTHON}", "-S", "-s", "-P", "-B", f"{tree}{root.PROGRAM}/{PROGRAM}"]
        descriptors = [str(control.fileno()), str(server), str(orders)]
        os.execve(program[0], [*program, *descriptors], environment)
    except BaseException as error:
        control.send(json.dumps(_told(error)).encode())
    finally:
        os._exit(1)


PROGRAM = "mcpgym_environments/python_sandbox/jail/zygote.py"


def _told(error: BaseException) -> dict[str, str]:
    """An error as the server's side reads it: what was refused and the remedy, or a fault of ours."""
    from mcpgym_environments.python_sandbox.jail import allow
    from mcpgym_environments.python_sandbox.jail.refusal import Refused

    if isinstance(error, Refused):
        return {"refused": error.reason, "remedy": error.remedy}
    if isinstance(error, allow.NotInstalled):
        return {"refused": str(error), "remedy": f"Install it: pip install {error.name}"}
    return {"fault": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    stand_in_for_parents()
    sys.exit(main(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])))
