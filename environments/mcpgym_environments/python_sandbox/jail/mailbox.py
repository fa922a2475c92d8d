"""An agent for places where nothing can be streamed to: a request in a file, its answer in another.

``agent.pyz --once REQUEST ANSWER`` hands the frame in the file REQUEST to an agent that stays, and writes its answer
to the file ANSWER (whole or not at all). The request ``hello`` starts the agent that stays; where processes do not live
from one command to the next, every later request ends with exit status 3: the session is lost.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import subprocess
import sys
import time

from mcpgym_environments.python_sandbox.jail import frames

LOST = 3
"""Exit status: there is no agent (any more)."""
START_SECONDS = 20.0
MAILBOX = "/tmp/.agent"
"""The folder of the socket, unless ``--mailbox`` says another."""


def once(request: str, answer: str, folder: str, again: list[str]) -> int:
    """Hand over one request; gives the exit status.

    Args:
        request: file with the frame.
        answer: file to write.
        folder: where the socket of the agent that stays is, or will be.
        again: the command that runs this program.
    """
    with open(request, "rb") as file:
        data = file.read(frames.HEAD_BYTES + frames.MAX_JSON + frames.MAX_BLOB + 1)
    try:
        json_length, blob_length = frames.lengths(data[: frames.HEAD_BYTES])
        header = frames.header(data[frames.HEAD_BYTES : frames.HEAD_BYTES + json_length])
        if len(data) != frames.HEAD_BYTES + json_length + blob_length:
            raise frames.FrameError(f"a frame of {frames.HEAD_BYTES + json_length + blob_length} bytes has {len(data)}")
    except frames.FrameError as error:
        print(f"{request}: {error}", file=sys.stderr)
        return 2
    place = os.path.join(folder, "socket")
    if header.get("op") == "hello":
        _start(folder, place, again)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(place)
            connection.sendall(data)
            found = _frame(connection)
    except (OSError, EOFError, frames.FrameError) as error:
        print(f"the session is lost: {error}", file=sys.stderr)
        return LOST
    part = f"{answer}.part"
    with open(part, "wb") as file:
        file.write(found)
    os.replace(part, answer)
    return 0


def _start(folder: str, place: str, again: list[str]) -> None:
    """Start an agent that stays, in place of one that may be there."""
    os.makedirs(folder, 0o700, exist_ok=True)
    with contextlib.suppress(OSError):
        os.unlink(place)  # the one before notices, and ends
    with open(os.devnull, "r+b") as null:
        subprocess.Popen(
            [*again, "--stay", place],
            stdin=null,
            stdout=null,
            stderr=null,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while not os.path.exists(place) and time.monotonic() < deadline:
        time.sleep(0.01)


def stay(place: str) -> tuple[int, int]:
    """Become two processes: this one carries frames between the socket at ``place`` and the other one.

    Returns:
        In the other process: the descriptors to serve on.
    """
    ours, theirs = socket.socketpair()
    if not os.fork():
        ours.close()
        descriptor = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, 100)
        theirs.close()
        return descriptor, descriptor
    theirs.close()
    with contextlib.suppress(OSError, EOFError, frames.FrameError):
        _carry(ours, place)
    os._exit(0)


def _carry(agent: socket.socket, place: str) -> None:
    door = socket.socket(socket.AF_UNIX)
    part = f"{place}.{os.getpid()}"
    door.bind(part)
    os.chmod(part, 0o600)
    door.listen(4)
    os.rename(part, place)  # only now is it there: whoever sees it can connect
    this = os.stat(place).st_ino
    door.settimeout(1.0)
    while True:
        try:
            with contextlib.suppress(OSError):
                if os.stat(place).st_ino != this:
                    return
            caller, _ = door.accept()
        except TimeoutError:
            if not os.path.exists(place):
                return
            continue
        with caller:
            caller.settimeout(None)
            try:
                request = _frame(caller)
            except (EOFError, OSError, frames.FrameError):
                continue
            agent.sendall(request)
            answer = _frame(agent)
            with contextlib.suppress(OSError):
                caller.sendall(answer)


def _frame(connection: socket.socket) -> bytes:
    head = _exactly(connection, frames.HEAD_BYTES)
    return head + _exactly(connection, sum(frames.lengths(head)))


def _exactly(connection: socket.socket, count: int) -> bytes:
    held = bytearray()
    while len(held) < count:
        part = connection.recv(min(count - len(held), 1 << 20))
        if not part:
            raise EOFError("the connection ended")
        held += part
    return bytes(held)
