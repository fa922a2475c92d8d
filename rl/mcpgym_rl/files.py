"""Files that are replaced whole."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_atomically(path: Path, value: Any) -> None:
    """Write ``value`` as JSON so that a reader finds the old file or the whole new one, whenever the process dies."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    replace_whole(path, text.encode("utf-8", "backslashreplace"))  # half a surrogate pair is then its JSON escape


def replace_whole(path: Path, content: bytes) -> None:
    """Write ``content`` so that a reader finds the old file or the whole new one, whenever the process dies."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sweep(folder: Path) -> None:
    """Remove what a process left that was killed while it wrote a file here; nobody else may be at work in it."""
    for left in folder.glob(".*.json*.*"):
        left.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows which files are in ``folder``; where a folder cannot be waited for, do nothing."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
