"""What every corpus that is one file says about it."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

from mcpgym.errors import ConfigurationError

LOADERS = 1
"""Counted up whenever a loader makes other pages of the same source: part of every fingerprint."""


def existing_file(spec: str, path: str | Path) -> Path:
    """The absolute path of a file that is there. Raises ConfigurationError, naming ``spec``, when it is not."""
    found = Path(path).expanduser().absolute()
    if found.is_dir():
        raise ConfigurationError(f"{spec}: {found} is a folder, not a file")
    if not found.is_file():
        near = (
            sorted(other.name for other in found.parent.glob(f"*{found.suffix}"))[:3] if found.parent.is_dir() else []
        )
        hint = f"; there is {', '.join(near)}" if near and found.suffix else ""
        raise ConfigurationError(f"{spec}: there is no file {found}{hint}")
    return found


def stamp_of(path: Path) -> str:
    """A short text that changes when the file does: from its size, its time and its first and last 64 KiB."""
    status = path.stat()
    digest = blake2b(f"{status.st_size} {status.st_mtime_ns}\n".encode(), digest_size=16)
    with path.open("rb") as file:
        digest.update(file.read(65536))
        file.seek(max(0, status.st_size - 65536))
        digest.update(file.read(65536))
    return digest.hexdigest()
