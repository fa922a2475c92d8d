"""Forking one session off the fork server, and what its init does until it serves. Loaded by the fork server alone."""

from __future__ import annotations

import _socket
import contextlib
import json
import os
import signal
import sys
from typing import Any

from mcpgym_environments.python_sandbox.jail import alone, init, namespaces
from mcpgym_environments.python_sandbox.jail.forking import fork
from mcpgym_environments.python_sandbox.jail.refusal import Refused

READY = b"+"
"""The first byte of a stream whose session is ready; a descriptor comes with it: the pidfd of its init."""
TIERS: dict[str, Any] = {"alone": alone, "namespaces": namespaces}
"""The modules that make a session of a process."""


def open_session(stream: int, number: int, order: dict[str, Any], tier: Any) -> None:
    """Fork what becomes the session with this number; an error is told to who waits at the stream's other end."""
    user = order["users"][0] + (order["first"] + number) % order["users"][1] if order["users"] else None
    try:
        folder = tier.before(order, user)
        child = fork()
    except OSError as error:
        _tell(stream, "fork", error)
        return
    if child:
        tier.began(child, folder)
        return
    try:
        signal.set_wakeup_fd(-1)
        tier.become_session(stream, order, folder, user, _serve)
    except BaseException as error:
        _tell(stream, "session", error)
    finally:
        os._exit(1)


def _serve(stream: int, this: int, place: init.Place) -> None:
    """Confined, say so and be the agent."""
    connection = _socket.socket(fileno=stream)
    connection.sendmsg((READY,), ((_socket.SOL_SOCKET, _socket.SCM_RIGHTS, this.to_bytes(4, sys.byteorder)),))
    connection.detach()
    os.close(this)
    init.serve((stream, stream), place)


def _tell(stream: int, step: str, error: BaseException) -> None:
    message = {"fault": f"{step}: {type(error).__name__}: {error}"}
    if isinstance(error, Refused):
        message = {"refused": error.reason, "remedy": error.remedy}
    with contextlib.suppress(OSError):
        os.write(stream, json.dumps(message).encode() + b"\n")
