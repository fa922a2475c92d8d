"""What the files of a corpus were read as, kept beside its pages so that the next build reads only what changed.

Everything is found by a hash of what it was made from (the file's name and all of its bytes), never by times: a file
that was swapped, renamed or put back is taken for what it holds now. A value that cannot be read, or that belongs to
another hash, counts as absent: then its file is read anew.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mcpgym_environments.wiki_search.pages import Page, Problems
from mcpgym_environments.wiki_search.sqlite_files import LibraryDamaged, Pool, writing


class Kept:
    """Values that JSON can hold: those of an ``old`` build, which are only read, and those of the ``new`` one.

    Without either it keeps nothing. Made by :func:`keeping`.
    """

    def __init__(self, old: Pool | None = None, new: sqlite3.Connection | None = None) -> None:
        self._old = old
        self._new = new

    def find(self, digest: bytes) -> Any:
        """What the old build kept under ``digest``; None where there is nothing."""
        return self._found(digest)[0]

    def carry(self, digest: bytes) -> Any:
        """What :meth:`find` gives; the new build keeps it too."""
        value, stored = self._found(digest)
        if value is not None:
            self._write(digest, stored)
        return value

    def put(self, digest: bytes, value: Any) -> None:
        """Keep a value that was made anew."""
        if self._new is not None:
            self._write(digest, zlib.compress(digest + json.dumps(value, separators=(",", ":")).encode(), 1))

    def _found(self, digest: bytes) -> tuple[Any, bytes]:
        if self._old is None:
            return None, b""
        try:
            for (stored,) in self._old.rows("SELECT value FROM kept WHERE digest = ?", (digest,)):
                whole = zlib.decompress(stored)
                if whole.startswith(digest):
                    return json.loads(whole[len(digest) :]), stored
        except (LibraryDamaged, sqlite3.Error):
            self._old = None
        except (zlib.error, ValueError, TypeError):
            pass
        return None, b""

    def _write(self, digest: bytes, stored: bytes) -> None:
        if self._new is not None:
            self._new.execute("INSERT INTO kept(digest, value) VALUES(?, ?)", (digest, stored))


@contextlib.contextmanager
def keeping(old: Path | None, new: Path) -> Iterator[Kept]:
    """A new file at ``new``, to be filled, with what the file ``old`` of an earlier build holds."""
    pool = None if old is None else Pool(old)
    try:
        with writing(new) as connection:
            connection.execute("CREATE TABLE kept(number INTEGER PRIMARY KEY, digest BLOB, value BLOB)")
            yield Kept(pool, connection)
            connection.execute("CREATE INDEX kept_by_digest ON kept(digest)")
    finally:
        if pool is not None:
            pool.close()


@runtime_checkable
class Updatable(Protocol):
    """A corpus whose pages can be made from those of an earlier build where its files did not change."""

    def pages_from(self, kept: Kept, problems: Problems) -> Iterable[Page]:
        """What ``pages`` gives; what is ``kept`` is not read again, and what is read is kept."""
        ...


def digest_of(*parts: str | bytes) -> bytes:
    """A hash that differs where any of ``parts`` does."""
    digest = blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.digest()
