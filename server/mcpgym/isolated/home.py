"""Where a package's environments play: one process for all of them, started when needed, again when it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcpgym.errors import ConfigurationError, InfrastructureError
from mcpgym.isolated.process import Child
from mcpgym.isolated.records import LOCK, Record
from mcpgym.isolated.wire import PROTOCOL

START_SECONDS = 60.0
"""How long a process has to begin."""

_homes: dict[Path, Home] = {}


class Home:
    """The process of one virtual environment; made by :func:`home_of`."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._child: Child | None = None
        self._starting = threading.Lock()

    @property
    def running(self) -> Child | None:
        """The process, where one runs."""
        child = self._child
        return child if child is not None and child.alive else None

    def child(self) -> Child:
        """The process; it is started where none runs, which takes about a second.

        Raises:
            ConfigurationError: there is no such virtual environment any more, or another mcpgym is in it.
            InfrastructureError: it does not start.
        """
        with self._starting:
            if (running := self.running) is not None:
                return running
            self._child = started(self.record)
            return self._child

    def end(self) -> None:
        """End the process."""
        if (running := self.running) is not None:
            running.end()


def home_of(record: Record) -> Home:
    """The home of a record: of one virtual environment, always the same."""
    if (known := _homes.get(record.folder)) is None:
        known = _homes[record.folder] = Home(record)
    return known


def started(record: Record) -> Child:
    """A process in the record's virtual environment, which has shown what it is.

    Raises:
        ConfigurationError, InfrastructureError: as in :meth:`Home.child`.
    """
    with held(record.folder) as handle:
        if not record.python.exists():
            raise ConfigurationError(
                f"the virtual environment of {record.package} is gone ({record.folder}): {record.again}, or "
                f"mcpgym env remove {record.package}"
            )
        child = Child(record.python, f"the process that {record.package} plays in", handle)
    greet(child, record.again)
    return child


def greet(child: Child, remedy: str) -> dict[str, Any]:
    """See that the process is one that this mcpgym can work with; what it says of itself.

    Raises:
        ConfigurationError: it has another mcpgym in it.
        InfrastructureError: it does not start.
    """
    try:
        said: dict[str, Any] = child.begin("hello", {}, START_SECONDS)[1].result()
    except InfrastructureError as error:
        raise InfrastructureError(f"{error} before it could be asked anything; {remedy} makes it anew") from None
    if said["protocol"] != PROTOCOL:
        child.end()
        raise ConfigurationError(
            f"{child.what} has mcpgym {said['mcpgym']}, which works together with another mcpgym than this: {remedy}"
        )
    return said


@contextlib.contextmanager
def held(folder: Path) -> Iterator[int | None]:
    """A lock on a virtual environment, shared by all that play in it: a process that inherits it holds it on.

    Raises:
        ConfigurationError: it is being removed.
    """
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:  # not there, or not ours to write: then nobody here can remove it either
        yield None
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigurationError(f"{folder} is being removed") from None
        except OSError:  # a file system without locks
            pass
        yield handle
    finally:
        os.close(handle)


def in_use(folder: Path) -> bool:
    """Whether a process plays in a virtual environment."""
    try:
        handle = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


async def child_of(home: Home) -> Child:
    """The home's process, without holding up the event loop while one starts."""
    running = home.running
    return running if running is not None else await asyncio.to_thread(home.child)
