"""The files that configure: which they are, and what they hold."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpgym_clients.failures import UsageProblem

NAME = "mcpgym.toml"
VARIABLE = "MCPGYM_CONFIG"
LARGEST = 64 * 1024
"""Bytes that a file may have: it is read by people."""
MOST = 20
"""How many faults of files are said at once."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong in a file.

    Attributes:
        path: the file.
        line: from 1; None where it is not known.
        key: the path of the key, as ``serve.port``; empty for the file itself.
        says: what is wrong, and what would be right; never a secret.
    """

    path: Path
    line: int | None
    key: str
    says: str

    def __str__(self) -> str:
        place = f"{shown(self.path)}:{self.line}" if self.line else shown(self.path)
        return f"{place}: {self.key}: {self.says}" if self.key else f"{place}: {self.says}"


class ConfigurationProblem(UsageProblem):
    """A file or variable that configures is wrong; ``faults`` are those of files."""

    def __init__(self, faults: Sequence[Fault] = (), says: str = "") -> None:
        more = f"; and {len(faults) - MOST} more: mcpgym config check" if len(faults) > MOST else ""
        super().__init__(says or "; ".join(map(str, faults[:MOST])) + more)
        self.faults = list(faults)


@dataclass(frozen=True, slots=True, eq=False)
class ConfigFile:
    """A file that was read.

    Attributes:
        path: where it is.
        named: whether somebody chose it: it is the user's own, or was named. Else it was found in the working folder.
        text: what stands in it.
        data: the same, parsed.
    """

    path: Path
    named: bool
    text: str = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)

    def line(self, *keys: str) -> int | None:
        """The line on which the value at ``keys`` stands, or the nearest table around it."""
        from mcpgym_clients.configuring.places import line_of

        return line_of(self.text, keys)

    def place(self, *keys: str) -> str:
        """``file:line`` of the value at ``keys``."""
        line = self.line(*keys)
        return f"{shown(self.path)}:{line}" if line else shown(self.path)

    def fault(self, keys: Sequence[str], says: str) -> Fault:
        """A fault of the value at ``keys``."""
        from mcpgym_clients.configuring.places import written

        return Fault(self.path, self.line(*keys), written(keys), says)


def shown(path: Path) -> str:
    """The path as people know it: from the working folder, where it lies in that."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def user_file() -> Path:
    """Where the user's own file is, whether there is one or not."""
    if sys.platform == "win32":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    else:
        given = os.environ.get("XDG_CONFIG_HOME", "")
        base = Path(given) if given.startswith("/") else Path(os.path.expanduser("~")) / ".config"  # noqa: PTH111
    return base / "mcpgym" / NAME


def chosen_files(given: Path | None) -> list[tuple[Path, bool]]:
    """The files that count, the strongest first, each with whether somebody chose it.

    Args:
        given: what ``--config-file`` says. It, or else what the variable names, is then the only file.
    """
    if given is not None:
        return [(given, True)]
    if named := os.environ.get(VARIABLE):
        return [(Path(named), True)]
    own, here = user_file(), Path(NAME)
    # os.path: a home that may not be looked into has no file
    found = [(own, True)] if os.path.isfile(own) else []  # noqa: PTH113
    if here.is_file() and not (found and here.samefile(own)):
        found.insert(0, (here, False))
    return found


def read_files(given: Path | None) -> list[ConfigFile]:
    """The files that count, the strongest first.

    Raises:
        ConfigurationProblem: one cannot be read, is no TOML, or holds a secret.
    """
    return [read(path, named) for path, named in chosen_files(given)]


def read(path: Path, named: bool) -> ConfigFile:
    """The file at ``path``.

    Raises:
        ConfigurationProblem: it cannot be read, is no TOML, or holds a secret.
    """
    file, faults = look(path, named)
    if file is None or faults:
        raise ConfigurationProblem(faults)
    return file


def look(path: Path, named: bool) -> tuple[ConfigFile | None, list[Fault]]:
    """The file at ``path`` and the secrets in it; None and why, where it cannot be read."""
    import tomllib

    from mcpgym_clients.configuring.bounds import DEEPEST, beyond, deep_key
    from mcpgym_clients.configuring.places import place_of_error
    from mcpgym_clients.configuring.secrecy import secrets_in

    try:
        with path.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            return None, [Fault(path, None, "", f"a configuration has at most {LARGEST // 1024} KiB; this is larger")]
        text = content.decode("utf-8")
        if (line := deep_key(text)) is not None:
            return None, [Fault(path, line, "", f"tables and lists are at most {DEEPEST} deep")]
        file = ConfigFile(path, named, text, tomllib.loads(text))
    except OSError as error:
        return None, [Fault(path, None, "", f"cannot be read: {error.strerror or error}")]
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return None, [Fault(path, line, "", "is not UTF-8, which TOML is written in")]
    except tomllib.TOMLDecodeError as error:
        line, says = place_of_error(str(error), text)
        return None, [Fault(path, line, "", f"no TOML: {says}")]
    except RecursionError:
        return None, [Fault(path, None, "", "no TOML: nested too deep")]
    except ValueError:  # Python reads no integer of thousands of digits
        return None, [Fault(path, None, "", "no TOML: an integer has at most 64 bits, and one here has thousands")]
    if faults := [file.fault(keys[:DEEPEST], says) for keys, says in beyond(file.data)]:
        return None, faults
    return file, [file.fault(keys, says) for keys, says in secrets_in(file.data)]
