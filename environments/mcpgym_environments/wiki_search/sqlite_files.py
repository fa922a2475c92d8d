"""SQLite files that are written once and then only read: by many threads, through a pool of connections."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcpgym.errors import McpgymError

_MAPPED = 1 << 40
_BROKEN = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
_KEPT = 16
"""Idle connections that are kept."""


DAMAGED = "damaged"
"""The name of such markers."""


class LibraryClosed(McpgymError):
    """A library was used after it was closed."""


class LibraryDamaged(McpgymError):
    """A library's file cannot be read any more; it is built anew when it is opened next."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """A new database at ``path``, as fast as can be: a build that fails is thrown away whole, so nothing is journaled.

    It is committed and safely on the disk at the end.
    """
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE", "cache_size=-65536"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        yield connection
        connection.execute("COMMIT")
    finally:
        connection.close()
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Pool:
    """Connections to one file that nobody writes any more; as many as there are threads at work at once."""

    def __init__(self, path: Path, marker: Path | None = None) -> None:
        """``marker`` is the file that says, once it is there, that a file of the library is damaged."""
        self.path = path
        self._marker = marker
        self._uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._process = os.getpid()

    @contextlib.contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection for a moment."""
        if self._closed:
            raise LibraryClosed("this library is closed")
        if self._process != os.getpid():  # a process that was forked has connections of its own
            self._process, self._idle = os.getpid(), []
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open()
        usable = True
        try:
            yield connection
        except sqlite3.DatabaseError as error:
            if (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in _BROKEN:
                raise
            usable = False
            raise self._damaged(error) from error
        finally:
            if usable and not self._closed and len(self._idle) < _KEPT:
                self._idle.append(connection)
            else:
                connection.close()

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """All rows of a query."""
        with self.connection() as connection:
            return connection.execute(sql, values).fetchall()

    def close(self) -> None:
        """Close what is idle; what is at work closes when it is done."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _open(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(self._uri, uri=True, check_same_thread=False, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise self._damaged(error) from error
        connection.execute(f"PRAGMA mmap_size={_MAPPED}")
        return connection

    def _damaged(self, error: Exception) -> LibraryDamaged:
        if self._marker is not None:
            with contextlib.suppress(OSError):
                self._marker.touch()
        return LibraryDamaged(f"{self.path} cannot be read ({error}): it is built anew when it is opened next")
