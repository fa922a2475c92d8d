"""The workspace as a tar archive, in parts: no more than one part is ever in memory."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator

from mcpgym_environments.python_sandbox.jail.files import Fault, Workspace

_PIECE = 1 << 20


class TarParts:
    """Files and folders of a workspace, sorted by path, with no owner and no links out of it followed.

    Args:
        files: the workspace; nothing may change in it until the last part is taken.
        most: how long the archive may be; sparse files can be larger than the disk they lie on.
    """

    def __init__(self, files: Workspace, most: int) -> None:
        self._left = self._most = most
        self._pieces = self._archive(files)
        self._held = bytearray()

    def next(self, most: int) -> tuple[bytes, bool]:
        """The next ``most`` bytes at most, and whether there are more.

        Raises:
            Fault: the files together are too large.
        """
        while len(self._held) <= most:
            piece = next(self._pieces, None)
            if piece is None:
                part = bytes(self._held)
                self._held.clear()
                return part, False
            self._left -= len(piece)
            if self._left < 0:
                raise Fault(f"the files are larger than {self._most} bytes together")
            self._held += piece
        part = bytes(memoryview(self._held)[:most])
        del self._held[:most]
        return part, True

    def _archive(self, files: Workspace) -> Iterator[bytes]:
        for name, found in files.tree():
            entry = tarfile.TarInfo(name)
            entry.mode = stat.S_IMODE(found.st_mode)
            entry.mtime = int(found.st_mtime)
            if stat.S_ISDIR(found.st_mode):
                entry.type = tarfile.DIRTYPE
            elif stat.S_ISLNK(found.st_mode):
                entry.type = tarfile.SYMTYPE
                entry.linkname = files.link(name)
            elif stat.S_ISREG(found.st_mode):
                entry.size = found.st_size
            else:
                continue
            try:
                descriptor = files.open(name) if entry.isreg() else -1
            except Fault:
                continue  # no rights to read it
            yield entry.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")
            if descriptor >= 0:
                yield from _content(descriptor, entry.size)
        yield bytes(2 * tarfile.BLOCKSIZE)


def _content(descriptor: int, size: int) -> Iterator[bytes]:
    """Exactly ``size`` bytes of a file and what fills the last block, whatever it holds by now."""
    left = size
    try:
        while left:
            part = os.read(descriptor, min(left, _PIECE))
            if not part:
                part = bytes(min(left, _PIECE))
            left -= len(part)
            yield part
    finally:
        os.close(descriptor)
    yield bytes(-size % tarfile.BLOCKSIZE)
