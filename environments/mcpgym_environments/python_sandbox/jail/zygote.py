"""The fork server ("zygote"): has everything imported, and forks a session whenever it is asked to.

It never runs user code and reads nothing that a session says. On the control socket it gets one datagram per session
with one descriptor, the session's end of its stream. The session itself sends the first byte over that stream, with a
pidfd of its init, when it is confined; or else a line that says why it is not. When the control socket closes or the
server's pidfd says that it ended, the fork server exits, and the kernel ends every session with it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_COMMON = (
    "array base64 bisect calendar cmath collections contextlib copy csv dataclasses datetime decimal enum fractions"
    " functools hashlib heapq inspect io itertools json math numbers operator pathlib pickle pprint queue random re"
    " shutil signal statistics string struct subprocess tempfile textwrap threading time traceback typing unicodedata"
    " unittest uuid zlib zoneinfo"
)
COMMON = _COMMON.split()
"""Modules that code asks for all the time: imported once, shared by every session."""
_ours: list[Any] = []
"""This program's modules: kept here, where nobody finds them by their names."""


def main(control: socket.socket, server: int, order: dict[str, Any]) -> None:
    """Import what the order names, say that it is ready, and serve until the server is gone."""
    try:
        opening = _import(order["modules"])
        from mcpgym_environments.python_sandbox.jail import system_calls

        tier = opening.TIERS[order["tier"]]
        system_calls.prctl(system_calls.PR_SET_NO_NEW_PRIVS, 1)
        system_calls.set_capabilities(tier.KEPT if order["users"] else frozenset())
        system_calls.death_signal(signal.SIGKILL)
        fill = _make_ready(order, tier)
    except BaseException as error:
        control.send(json.dumps({"fault": f"{type(error).__name__}: {error}"}).encode())
        raise SystemExit(1) from None
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    facts = {"python": sys.version.split()[0], "packages": order["versions"]}
    control.send(json.dumps({"ready": facts}).encode())
    gc.collect()
    gc.freeze()
    gc.disable()
    fill()
    _serve(control, server, order, tier, opening.open_session)


def _import(modules: list[str]) -> ModuleType:
    """What the order names, after what sessions themselves consist of, so that this lies close together in memory."""
    from mcpgym_environments.python_sandbox.jail import holes

    holes.fill()
    from mcpgym_environments.python_sandbox.jail import opening

    for name in (*COMMON, *modules):
        importlib.import_module(name)
    sys.path[:] = [folder for folder in sys.path if not folder.endswith("/mcpgym")]
    for name in ("mcpgym_environments", "mcpgym_environments.python_sandbox"):
        del sys.modules[name].__path__
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        _ = numpy.random.rand  # loaded at its first use, which is each session's beginning: three megabytes a session
        numpy.dot(numpy.ones((64, 64)), numpy.ones((64, 64)))  # BLAS takes its memory now, once for all sessions
    return opening


def _make_ready(order: dict[str, Any], tier: Any) -> Callable[[], None]:
    """Do once what every session would do alike; gives what fills the holes in memory that remain."""
    from mcpgym_environments.python_sandbox.jail import holes, init, rehearsal

    tier.begin(order)
    rehearsal.rehearse()
    rehearsal.prepare(*tier.FOLDERS)
    init.take_signals()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGCHLD,))
    names = [name for name in sys.modules if name.partition(".")[0] == "mcpgym_environments"]
    _ours.extend([sys.modules.pop(name) for name in names])
    return holes.fill


def _serve(
    control: socket.socket,
    server: int,
    order: dict[str, Any],
    tier: Any,
    open_session: Callable[[int, int, dict[str, Any], Any], None],
) -> None:
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    number = 0
    poll = select.poll()
    for descriptor in (control.fileno(), server, woken):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if server in ready:
            return
        if woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(woken, 4096)
            _reap(tier)
        if control.fileno() in ready:
            request, descriptors, _, _ = socket.recv_fds(control, 4096, 4)
            if not request:
                return
            if len(descriptors) == 1:
                open_session(descriptors[0], number, order, tier)
                number += 1
            for descriptor in descriptors:
                os.close(descriptor)


def _reap(tier: Any) -> None:
    with contextlib.suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            tier.ended(child)


if __name__ == "__main__":
    top = os.path.abspath(__file__)
    for _ in range(4):
        top = os.path.dirname(top)
    sys.path.append(top)
    sys.path.append(os.path.join(os.path.dirname(os.__file__), "site-packages"))
    with open(int(sys.argv[3]), "rb") as orders:
        given = json.load(orders)
    main(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), given)
