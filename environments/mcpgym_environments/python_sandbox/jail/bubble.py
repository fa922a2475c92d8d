"""Begin a session inside bubblewrap: it has made the namespaces and the root, and left us the rights to finish.

As process 1 of its own namespaces this mounts the bounded file systems, gives up every right, and becomes init, the
same as a session of ``zygote.py`` does.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pathlib
import socket
import sys
import types


def begin(arguments: list[str]) -> None:
    """Serve one session on standard input.

    Args:
        arguments: bytes of the workspace, how many files it may have, and the packages to import.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    package = os.path.dirname(here)
    for name, path in (
        ("mcpgym_environments", os.path.dirname(package)),
        ("mcpgym_environments.python_sandbox", package),
    ):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [path]
    from mcpgym_environments.python_sandbox.jail import hardening, init, namespaces, root

    connection = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    with contextlib.suppress(OSError):  # a container may forbid it
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    namespaces.fix_devices()
    namespaces.furnish(int(arguments[0]), int(arguments[1]))
    sys.path.insert(0, f"/{root.SITE}")
    for name in arguments[2:]:
        importlib.import_module(name)
    for name in ("mcpgym_environments", "mcpgym_environments.python_sandbox"):
        sys.modules[name].__path__ = []
    hardening.confine()
    os.dup2(null, 2)  # until here, errors are for who started us
    os.closerange(max(connection.fileno(), 2) + 1, 1024)
    init.serve(connection, init.Place(confine=hardening.harden_worker, facts={"isolation": "namespaces"}))
    os._exit(0)


if __name__ == "__main__":
    begin(sys.argv[1:])
