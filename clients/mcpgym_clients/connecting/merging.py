"""A server's entry put into a client's file: everything else in it stays, a copy of the old file is kept."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mcpgym_clients.connecting.json_text import BrokenJson, parse, set_member
from mcpgym_clients.connecting.known_clients import KnownClient
from mcpgym_clients.failures import CommandFailed, UsageProblem
from mcpgym_rl.files import replace_whole

MAX_BYTES = 64 * 2**20
"""No client's configuration is larger; Claude Code keeps more than servers in its own."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of a file. ``backup`` is the copy of what it was before; None where there was none."""

    path: Path
    what: Literal["added", "replaced", "unchanged"]
    backup: Path | None = None


def snippet(client: KnownClient, name: str, entry: Mapping[str, Any]) -> str:
    """What stands in the client's file for this server alone."""
    if client.format == "toml":
        return _toml_with("", client.section, name, entry).strip()
    return json.dumps({client.section: {name: entry}}, indent=2, ensure_ascii=False)


def merge(client: KnownClient, path: Path, name: str, entry: Mapping[str, Any]) -> Merged:
    """Put ``entry`` into the file at ``path``, which need not be there yet.

    An entry of this name is replaced only if it is one of ours (it runs mcpgym, or names a URL where ours does).

    Raises:
        UsageProblem: another server has this name, or the file cannot be understood; nothing was changed then.
        CommandFailed: the file cannot be read or written.
    """
    target = path.resolve()  # a link stays a link
    try:
        old = _read(target)
        text = "" if old is None else old.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{path}: this is no UTF-8 text (byte {error.start}); mend it first") from error
    known = _servers(client, path, text)
    if name in known:
        if known[name] == entry:
            return Merged(path, "unchanged")
        if not _is_ours(known[name], entry):
            raise UsageProblem(
                f"{path} has another server called {name!r}: choose a name with --name, or take that one out"
            )
    try:
        made = _with(client, text, name, entry)
        if _servers(client, path, made) != {**known, name: dict(entry)}:
            raise CommandFailed(f"{path}: the entry cannot be put there without touching others; add it by hand")
        target.parent.mkdir(parents=True, exist_ok=True)
        backup = None if old is None else _keep(target, old)
        mode = None if old is None else stat.S_IMODE(target.stat().st_mode)
        replace_whole(target, made.encode())
        if mode is not None:
            target.chmod(mode)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be written: {error.strerror or error}") from error
    return Merged(path, "replaced" if name in known else "added", backup)


def _read(path: Path) -> bytes | None:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageProblem(f"{path} has over {MAX_BYTES // 2**20} MB: that is no client's configuration")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror or error}") from error


def _servers(client: KnownClient, path: Path, text: str) -> dict[str, Any]:
    """The servers that a file's text names."""
    try:
        whole = _toml(text) if client.format == "toml" else parse(text).value
    except BrokenJson as error:
        raise UsageProblem(f"{path}: {error}. Mend the file first; nothing was changed") from error
    except ValueError as error:
        raise UsageProblem(f"{path} is no TOML: {error}. Mend the file first; nothing was changed") from error
    servers = whole.get(client.section, {}) if isinstance(whole, dict) else None
    if not isinstance(servers, dict):
        raise UsageProblem(f"{path}: {client.section} is no table of servers. Mend the file first; nothing was changed")
    return servers


def _with(client: KnownClient, text: str, name: str, entry: Mapping[str, Any]) -> str:
    if client.format == "toml":
        return _toml_with(text, client.section, name, entry)
    return set_member(text, (client.section, name), dict(entry))


def _toml(text: str) -> Any:
    import tomllib

    return tomllib.loads(text)


def _toml_with(text: str, section: str, name: str, entry: Mapping[str, Any]) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    servers = document.setdefault(section, tomlkit.table(is_super_table=True))
    servers[name] = tomlkit.item({key: value for key, value in entry.items() if key != "env"})
    if "env" in entry:
        servers[name]["env"] = tomlkit.item(entry["env"])
    return tomlkit.dumps(document)


def _is_ours(old: Any, new: Mapping[str, Any]) -> bool:
    """Whether an entry came from here: it starts mcpgym, or has a URL where the new one has."""
    if not isinstance(old, dict):
        return False
    arguments = old.get("args")
    words = [old.get("command"), *(arguments if isinstance(arguments, list) else [])]
    starts = [word for word in words if isinstance(word, str)]
    ours = any("mcpgym" in word.replace("\\", "/").rpartition("/")[2] for word in starts[:3])
    urls = [key for key in ("url", "httpUrl") if isinstance(old.get(key), str) and key in new]
    return ours or bool(urls)


def _keep(path: Path, content: bytes) -> Path:
    """A copy of what a file was, beside it, under a name that nothing has."""
    number = 1
    while True:
        backup = path.with_name(f"{path.name}.before-mcpgym-{number}")
        try:
            with backup.open("xb") as file:
                file.write(content)
        except FileExistsError:
            number += 1
            continue
        backup.chmod(stat.S_IMODE(path.stat().st_mode))
        return backup
