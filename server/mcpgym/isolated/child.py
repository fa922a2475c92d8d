"""The process in a virtual environment (``python -I -m mcpgym.isolated.child SOCKET LIFE GRACE``): it plays.

It ends when the socket does, in order where that is possible. A process of its own watches LIFE, a pipe whose other end
whoever started us has: when that ends, and we do not within GRACE seconds, it kills us with all that we started.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import sys
import time

END_SECONDS = 5.0
"""How long environments may take to let go of what they hold, once the socket has ended."""
LONGEST = 2**31
"""Bytes of one request."""


def main() -> None:
    """Answer until nobody asks any more."""
    number, life = int(sys.argv[1]), int(sys.argv[2])
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)  # whoever may end this closes the socket
    _watched(number, life, float(sys.argv[3]))
    os.close(life)
    os.dup2(2, 1)  # what an environment prints is no part of any answer, and shows where ours does
    _allow_many_files()
    channel = socket.socket(fileno=number)
    os.set_inheritable(number, False)
    asyncio.run(_answer(channel))
    os._exit(0)  # whatever threads still do


async def _answer(channel: socket.socket) -> None:
    from mcpgym.isolated.host import Host
    from mcpgym.isolated.wire import decode

    reader, writer = await asyncio.open_connection(sock=channel, limit=LONGEST)
    host = Host(writer.write)
    with contextlib.suppress(OSError, ValueError):  # the other side is gone: there is nobody to tell
        while line := await reader.readline():
            host.hear(decode(line))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            await host.end()


def _watched(number: int, life: int, grace: float) -> None:
    """Start the process that watches. It imports nothing and holds nothing."""
    watched = os.getpid()
    if os.fork():
        return
    nothing = os.open(os.devnull, os.O_RDWR)
    for inherited in (0, 1, 2):
        os.dup2(nothing, inherited)
    os.closerange(3, life)  # the lock on the virtual environment too: it is not this process that plays there
    os.closerange(life + 1, 256)
    while not select.select([life], [], [], 1.0)[0]:
        if os.getppid() != watched:
            os._exit(0)
    until = time.monotonic() + grace
    while time.monotonic() < until:
        if os.getppid() != watched:
            os._exit(0)
        time.sleep(0.05)
    os.killpg(0, signal.SIGKILL)


def _allow_many_files() -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # some systems allow less than they say
        return


if __name__ == "__main__":
    main()
