"""What was added: one record for each package, in this user's data folder, beside the virtual environments."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = "mcpgym.added/1"
VARIABLE = "MCPGYM_ENVIRONMENTS"
"""Names another folder for records and virtual environments than the usual one."""
FOLDER = re.compile(r"[0-9a-f]{16}")
"""What the folder of a virtual environment is called: never anything that leads elsewhere."""
LOCK = ".in-use"
"""The file in a virtual environment's folder that every process playing in it has locked, shared with others."""

_read: dict[Path, tuple[tuple[int, int, int], Record | None]] = {}


@dataclass(frozen=True, slots=True)
class Record:
    """One package that was added. ``content`` is the whole record, as JSON."""

    path: Path
    content: Mapping[str, Any]

    @property
    def package(self) -> str:
        """The package's name."""
        return str(self.content["package"])

    @property
    def version(self) -> str:
        """The package's version."""
        return str(self.content["version"])

    @property
    def environments(self) -> Mapping[str, Mapping[str, Any]]:
        """What is known of each environment in it, by name."""
        found: Mapping[str, Mapping[str, Any]] = self.content["environments"]
        return found

    @property
    def folder(self) -> Path:
        """The virtual environment."""
        return venvs(self.path.parent) / str(self.content["folder"])

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def again(self) -> str:
        """The command that makes it anew."""
        return f"mcpgym env add {self.content['spec']} --replace"


def data_folder() -> Path:
    """Where records are: ``MCPGYM_ENVIRONMENTS``, or ``mcpgym/environments`` in this user's data folder."""
    if named := os.environ.get(VARIABLE, "").strip():
        return Path(named).absolute()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        given = os.environ.get("XDG_DATA_HOME", "")
        base = Path(given) if given and Path(given).is_absolute() else Path.home() / ".local" / "share"
    return base / "mcpgym" / "environments"


def venvs(folder: Path) -> Path:
    """Where the virtual environments of a folder of records are."""
    return folder / "venvs"


def records() -> list[Record]:
    """Every package that was added, by name. A file that is no record is left out."""
    found = map(_record, _files(data_folder()))
    return [record for record in found if record is not None]


def odd_files() -> list[Path]:
    """Files that should be records and are none."""
    return [path for path in _files(data_folder()) if _record(path) is None]


def added() -> dict[str, Record]:
    """The record of each environment that was added, by the environment's name."""
    return {name: record for record in records() for name in record.environments}


def _files(folder: Path) -> Iterator[Path]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder))
    except OSError:
        return
    yield from (folder / name for name in names if name.endswith(".json") and not name.startswith("."))


def _record(path: Path) -> Record | None:
    """The record in a file, read again only where the file is another."""
    try:
        about = path.stat()
        stamp = (about.st_mtime_ns, about.st_size, about.st_ino)
        if (known := _read.get(path)) is not None and known[0] == stamp:
            return known[1]
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    _read[path] = stamp, Record(path, content) if _sound(content) else None
    return _read[path][1]


def _sound(content: Any) -> bool:
    return (
        isinstance(content, dict)
        and content.get("schema") == SCHEMA
        and all(isinstance(content.get(key), str) for key in ("package", "version", "spec", "folder"))
        and FOLDER.fullmatch(content["folder"]) is not None
        and isinstance(content.get("environments"), dict)
        and all(isinstance(about, dict) and "tools" in about for about in content["environments"].values())
    )
