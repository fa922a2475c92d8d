"""The files of a session, read and written by init while no user code runs.

Every path is resolved by the kernel beneath the workspace (``openat2``), or, where there is no such call, one name at
a time without following links. Only regular files are opened, and never so that opening could wait.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import stat
import struct
import sys
from collections.abc import Iterator, Sequence

from mcpgym_environments.python_sandbox.jail import emptying
from mcpgym_environments.python_sandbox.jail.walking import FOLDER, TooDeep, walked

MOST_PATH = 4096
MOST_ENTRIES = 1000
"""How many entries a listing gives."""
MOST_LISTED = 1 << 20
"""How long their JSON may be, in bytes: names of bytes that are no text take six each."""
MOST_DEPTH = 64
MOST_OVER = 4
"""How many times its limit a workspace may have grown to before large files are removed from it."""
LARGE = 1 << 20
TOO_MANY = 2**31

_OPENAT2 = 437
_NO_XDEV, _NO_MAGICLINKS, _NO_SYMLINKS, _IN_ROOT = 0x01, 0x02, 0x04, 0x10
_OPEN_HOW = struct.Struct("=QQQ")
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class Fault(Exception):
    """What went wrong with a file, in words for whoever asked."""


class Workspace:
    """The folder of a session's files.

    Args:
        path: where it is.
        limit: how many bytes its files may have in all; looked at where the kernel sets no limit (see ``capped``).
        capped: whether the kernel limits it (a file system of its own).
        beside: other folders whose files count as well.
    """

    def __init__(self, path: str, limit: int, capped: bool, beside: Sequence[str] = ()) -> None:
        self._path = path
        self._beside = beside
        self._limit = limit
        self._capped = capped
        self._root = -1
        self.full = (0, 0)
        """What :meth:`usage` said when it was last too much: only more than that is too much again."""
        self._kernel = _libc is not None
        self.sound()

    def bound(self, limit: int, capped: bool) -> None:
        """Another limit, and whether the kernel keeps it."""
        self._limit, self._capped = limit, capped

    def sound(self) -> int:
        """A descriptor of the workspace, made whole again if user code removed it or took its rights away."""
        if self._root >= 0:
            found = os.fstat(self._root)
            if found.st_nlink:
                if found.st_mode & 0o700 != 0o700:
                    with contextlib.suppress(OSError):
                        os.fchmod(self._root, 0o700)
                with contextlib.suppress(OSError):
                    here = os.lstat(self._path)
                    if (here.st_dev, here.st_ino) == (found.st_dev, found.st_ino):
                        return self._root
            os.close(self._root)
            self._root = -1
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        for attempt in (1, 2):
            try:
                self._root = os.open(self._path, flags)
                break
            except PermissionError:
                os.chmod(self._path, 0o700)
            except OSError as error:
                if attempt == 2:
                    raise
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    os.unlink(self._path)
                os.makedirs(self._path, 0o700, exist_ok=True)
        else:
            self._root = os.open(self._path, flags)
        return self._root

    @property
    def device(self) -> int:
        """The number of the file system that it lies on."""
        return os.fstat(self._root).st_dev

    # ------------------------------------------------------------------ opening

    def _open(self, path: str, flags: int, mode: int = 0) -> int:
        root = self.sound()
        flags |= os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        try:
            if self._kernel:
                try:
                    return _openat2(root, path, flags, mode)
                except OSError as error:
                    if error.errno not in (errno.ENOSYS, errno.EPERM):
                        raise
                    self._kernel = False
            return _walk(root, path, flags, mode)
        except OSError as error:
            raise Fault(_explained(error, path)) from None

    def _regular(self, path: str, flags: int, mode: int = 0) -> tuple[int, os.stat_result]:
        descriptor = self._open(path, flags, mode)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(descriptor)
            raise Fault(f"{shown(path)} is {kind_of(found.st_mode)}, not a file")
        return descriptor, found

    # ------------------------------------------------------------------ what the tools do

    def read(self, path: str, offset: int, limit: int) -> tuple[bytes, int]:
        """Bytes of a file from ``offset`` on, and the file's size.

        Raises:
            Fault: it cannot be read.
        """
        descriptor, found = self._regular(relative(path), os.O_RDONLY)
        try:
            parts, left = [], limit
            while left:
                part = os.pread(descriptor, min(left, 1 << 20), offset)
                if not part:
                    break
                parts.append(part)
                offset += len(part)
                left -= len(part)
            return b"".join(parts), found.st_size
        except OSError as error:
            raise Fault(_explained(error, path)) from None
        finally:
            os.close(descriptor)

    def write(self, path: str, data: bytes) -> None:
        """Replace a file's content, making it and the folders above it if they are missing.

        Raises:
            Fault: it cannot be written, or there is no room; the content is then as it was.
        """
        name = relative(path)
        if name == ".":
            raise Fault(f"{shown(path)} is a folder, not a file")
        folders = name.split("/")[:-1]
        for depth in range(1, len(folders) + 1):
            self._folder("/".join(folders[:depth]))
        descriptor, found = self._regular(name, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            self._room(len(data), found.st_blocks * 512)
            os.ftruncate(descriptor, 0)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        except OSError as error:
            raise Fault(_explained(error, path)) from None
        finally:
            os.close(descriptor)

    def _folder(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        above = self._open(parent or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.mkdir(name, 0o755, dir_fd=above)
        except FileExistsError:
            pass
        except OSError as error:
            raise Fault(_explained(error, path)) from None
        finally:
            os.close(above)

    def _room(self, wanted: int, freed: int) -> None:
        if self._capped:
            found = os.fstatvfs(self._root)
            free = found.f_bavail * found.f_frsize
        else:
            free = max(self._limit, self.full[0]) - self.usage()[0]
        if wanted > free + freed:
            raise Fault(f"no room: {wanted} bytes do not fit into the {max(0, free + freed)} left of the workspace")

    def list(self, path: str, depth: int) -> tuple[bytes, int]:
        """A JSON list of what lies in a folder, sorted by path, and how many entries were left out.

        Raises:
            Fault: there is no such folder.
        """
        top = relative(path)
        descriptor = self._open(top, os.O_RDONLY | os.O_DIRECTORY)
        entries: list[str] = []
        omitted = size = 0
        try:
            for name, found in _tree(descriptor, "" if top == "." else top + "/", max(1, min(depth, MOST_DEPTH))):
                if len(entries) >= MOST_ENTRIES or size >= MOST_LISTED or len(name) > MOST_PATH:
                    omitted += 1
                    continue
                content = found.st_size if stat.S_ISREG(found.st_mode) else 0
                entry = {"path": name, "kind": _kinds(found.st_mode), "size": content}
                entries.append(json.dumps(entry, separators=(",", ":")))
                size += len(entries[-1]) + 1
        finally:
            os.close(descriptor)
        return f"[{','.join(entries)}]".encode(), omitted

    def tree(self) -> Iterator[tuple[str, os.stat_result]]:
        """Everything in the workspace, folders before what is in them."""
        return _tree(self.sound(), "", MOST_DEPTH)

    def open(self, name: str) -> int:
        """A descriptor to read a regular file from.

        Raises:
            Fault: there is none, or no right to.
        """
        return self._regular(name, os.O_RDONLY)[0]

    def link(self, name: str) -> str:
        """Where a link of the workspace says it leads; nothing is followed."""
        try:
            above = self._open(name.rpartition("/")[0] or ".", os.O_RDONLY | os.O_DIRECTORY)
        except Fault:
            return ""
        try:
            return os.readlink(name.rpartition("/")[2], dir_fd=above)
        except OSError:
            return ""
        finally:
            os.close(above)

    def usage(self, most: int = TOO_MANY) -> tuple[int, int]:
        """Bytes on disk, and the number of files and folders, which is not counted further than beyond ``most``.

        Whatever user code does meanwhile: a folder without rights is given them, and one that is too deep to be looked
        into counts as more files than there may be.
        """
        total = count = 0
        try:
            for _, _, found in self._all():
                total += found.st_blocks * 512
                count += 1
                if count > most:
                    break
        except TooDeep:
            count = TOO_MANY
        return total, count

    def shed(self) -> None:
        """Remove large files if there is far more than may be, so that not every call can add to it.

        What is too deep to be looked into is removed with all else. No process of the session may be running.
        """
        size, count = self.usage()
        if count == TOO_MANY:
            emptying.empty(self.sound())
            for path in self._beside:
                emptying.empty_path(path)
        elif size > MOST_OVER * self._limit:
            for folder, name, found in self._all():
                if stat.S_ISREG(found.st_mode) and found.st_blocks * 512 >= LARGE:
                    with contextlib.suppress(OSError):
                        os.unlink(name, dir_fd=folder)

    def _all(self) -> Iterator[tuple[int, str, os.stat_result]]:
        """Everything that user code has made, here and in the folders beside: its folder, its name and facts."""
        for path in (None, *self._beside):
            with contextlib.suppress(OSError):
                yield from walked(os.dup(self.sound()) if path is None else os.open(path, FOLDER))


def relative(path: str) -> str:
    """A path as names beneath the workspace, where ``/work/x`` and ``x`` are the same.

    Raises:
        Fault: it is no path, or leads out.
    """
    if not path or "\0" in path or len(path) > MOST_PATH:
        raise Fault(f"{shown(path)} is not a path: give the name of a file in the workspace, such as data/table.csv")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise Fault(f"{shown(path)} is not a path: it holds half of a character") from None
    if path == "/work" or path.startswith("/work/"):
        path = path[5:].lstrip("/") or "."
    elif path.startswith("/"):
        raise Fault(f"{shown(path)} is outside of the workspace; paths are relative to it, such as data/table.csv")
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if not names:
                raise Fault(f"{shown(path)} leads out of the workspace; paths are relative to it")
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return "/".join(names) or "."


def shown(path: str) -> str:
    """A path for a message: short, and with nothing in it that acts on a terminal."""
    text = repr(path[:100])
    return text if len(path) <= 100 and len(text) <= 120 else f"{text[:97]}...'"


def kind_of(mode: int) -> str:
    """What kind of thing a mode says it is, with its article."""
    return {"directory": "a folder", "link": "a link", "file": "a file"}.get(_kinds(mode), "no regular file")


def _kinds(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    return "directory" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "other"


def _explained(error: OSError, path: str) -> str:
    name = shown(path)
    texts = {
        errno.ENOENT: f"there is no {name} in the workspace",
        errno.ENOTDIR: f"{name}: a part of the path is a file, not a folder",
        errno.EISDIR: f"{name} is a folder, not a file",
        errno.ELOOP: f"{name} is a link that leads out of the workspace or in a circle",
        errno.EXDEV: f"{name} leads out of the workspace",
        errno.ENXIO: f"{name} is no regular file",
        errno.EACCES: f"{name} has no rights for that (the code took them away)",
        errno.ENOSPC: "no room is left in the workspace",
        errno.EDQUOT: "no room is left in the workspace",
        errno.ENAMETOOLONG: f"{name} is too long a name",
    }
    return texts.get(error.errno or 0, f"{name}: {os.strerror(error.errno or 0)}")


def _openat2(root: int, path: str, flags: int, mode: int) -> int:
    how = _OPEN_HOW.pack(flags, mode, _IN_ROOT | _NO_MAGICLINKS | _NO_XDEV)
    assert _libc is not None
    for _ in range(10):  # EAGAIN: something was renamed while the path was resolved
        found = int(_libc.syscall(_OPENAT2, root, os.fsencode(path), how, _OPEN_HOW.size))
        if found >= 0:
            return found
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def _walk(root: int, path: str, flags: int, mode: int) -> int:
    """Open a path one name at a time and follow no link."""
    names = path.split("/")
    here = os.dup(root)
    try:
        for name in names[:-1]:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = below
        return os.open(names[-1], flags | os.O_NOFOLLOW, mode, dir_fd=here)
    finally:
        os.close(here)


def _tree(folder: int, prefix: str, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    """Everything under an open folder, sorted; follows no links; what cannot be opened is not entered."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            continue
        yield prefix + name, found
        if depth > 1 and stat.S_ISDIR(found.st_mode):
            try:
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            except OSError:
                continue
            try:
                yield from _tree(below, f"{prefix}{name}/", depth - 1)
            finally:
                os.close(below)
