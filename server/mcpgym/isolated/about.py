"""What is told of environments and packages without playing, as JSON: what a record keeps."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import sys
from collections.abc import Collection, Mapping
from importlib.metadata import Distribution, distributions, entry_points
from pathlib import Path
from typing import Any

from mcpgym.environment import Environment
from mcpgym.registry import GROUP

OWN = "mcpgym"


def about(environment: Environment[Any, Any, Any]) -> dict[str, Any]:
    """All of an instance that others ask for: enough to list it, to describe it, and to offer its tools."""
    cls = type(environment)
    file = getattr(sys.modules.get(cls.__module__), "__file__", None)
    return {
        "version": environment.version,
        "description": environment.description,
        "instructions": environment.instructions,
        "icon": environment.icon,
        "splits": {split: environment.size(split) for split in environment.splits},
        "max_turns": environment.max_turns,
        "reproducible": environment.reproducible,
        "schema_hash": environment.schema_hash,
        "tools": [
            {
                **tool.listing,
                "title": tool.title,
                "timeout": tool.timeout,
                "read_only": tool.read_only,
                "is_async": tool.is_async and not tool.inline,
            }
            for tool in environment.tools.values()
        ],
        "rewards": [
            {**{key: getattr(item, key) for key in ("name", "weight", "low", "high", "description")},
             "needs_transcript": "transcript" in item.needs}
            for item in environment.rewards.values()
        ],
        "config": environment.config.model_dump(mode="json"),
        "config_schema": cls.config_class.model_json_schema(),
        "policies": sorted(environment.reference_policies()),
        "has_app": cls.app is not Environment.app,
        "responds": cls.respond is not Environment.respond,
        "has_tree": cls.game_tree is not Environment.game_tree,
        "file": None if file is None else _below(Path(file)),
    }  # fmt: skip


def requirements(cls: type[Environment[Any, Any, Any]]) -> list[dict[str, Any]]:
    """What an environment needs of this machine."""
    return [dataclasses.asdict(item) for item in cls.requirements()]


def installed_here(name: str | None) -> dict[str, Any]:
    """The package that an installer was asked for, and the environments that packages register; ours are left out.

    Args:
        name: the package's; None where it came from a folder, a file or a repository, which it then says itself.
    """
    registered = [
        {"name": entry.name, "value": entry.value, "package": "" if entry.dist is None else entry.dist.name}
        for entry in entry_points(group=GROUP)
        if entry.dist is None or entry.dist.name != OWN
    ]
    found = _asked_for(name, {entry["package"] for entry in registered})
    about = None
    if found is not None:
        about = {"name": found.name, "version": found.version, "from": _origin(found)}
        about["files_sha256"] = _files_hash(found)
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "package": about,
        "environments": registered,
    }


def _asked_for(name: str | None, registering: Collection[str]) -> Distribution | None:
    """The package; where several came from elsewhere than an index, one that registers an environment."""
    others = [item for item in distributions() if item.name != OWN]
    if name is not None:
        return next((item for item in others if _plain(item.name) == _plain(name)), None)
    direct = [item for item in others if _origin(item) is not None]
    return next((item for item in direct if item.name in registering), next(iter(direct), None))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _below(file: Path) -> str | None:
    """A file's place in this virtual environment; None where it is elsewhere."""
    root = Path(sys.prefix)
    return str(file.relative_to(root)) if file.is_relative_to(root) else None


def _files_hash(item: Distribution) -> str:
    """SHA-256 over the names and hashes of the files that the package brought: the same however it was installed."""
    rows = []
    for file in item.files or ():
        by_installer = ".dist-info" in file.parts[0] and file.name not in ("METADATA", "entry_points.txt")
        if file.hash is not None and not by_installer and ".." not in file.parts:
            rows.append(f"{file}\t{file.hash.mode}={file.hash.value}")
    return hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()


def _origin(item: Distribution) -> Mapping[str, Any] | None:
    """Where it came from, where that was no index (PEP 610)."""
    text = item.read_text("direct_url.json")
    return None if text is None else dict(json.loads(text))
