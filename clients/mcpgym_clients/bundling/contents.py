"""The files of a bundle."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution
from typing import Any

from mcpgym.environment import Environment
from mcpgym_clients.bundling.distributions import Needed, said_of
from mcpgym_clients.bundling.icon import icon
from mcpgym_clients.bundling.manifest import ENTRY, ICON, manifest
from mcpgym_clients.bundling.settings import Settings

_SERVER = '''"""Serves {environment} over MCP on standard input and output. Written by mcpgym bundle."""

import sys

from mcpgym_clients.bundling.entry import run

SETTINGS = {settings}
FIXED = {fixed}

if __name__ == "__main__":
    sys.exit(run({environment!r}, SETTINGS, FIXED, sys.argv[1:]))
'''


def contents(
    environment: Environment[Any, Any, Any], home: Distribution, packages: Sequence[Needed], settings: Settings
) -> dict[str, bytes]:
    """Names and bytes: the manifest, what uv installs, where it starts, an icon, and the wheels that are carried."""
    files = {
        "manifest.json": _json(manifest(environment, home, settings.form)),
        "pyproject.toml": _project(environment.name, home, packages).encode(),
        ENTRY: _server(environment.name, settings).encode(),
        ICON: icon(environment.name),
    }
    for package in packages:
        if package.wheel is not None:
            name, content = package.wheel
            files[f"wheels/{name}"] = content
    return files


def _server(environment: str, settings: Settings) -> str:
    return _SERVER.format(environment=environment, settings=_literal(settings.values), fixed=list(settings.fixed))


def _literal(values: Mapping[str, str]) -> str:
    if not values:
        return "{}"
    return "{\n" + "".join(f"    {name!r}: {value!r},\n" for name, value in values.items()) + "}"


def _project(name: str, home: Distribution, packages: Sequence[Needed]) -> str:
    lines = [
        "# What uv installs before it starts src/server.py. Written by mcpgym bundle.",
        "[project]",
        f"name = {_text(f'{name}-bundle')}",
        f"version = {_text(home.version)}",
        f"requires-python = {_text(said_of(home, 'Requires-Python') or '>=3.11')}",
        f"dependencies = [{', '.join(_text(package.requirement) for package in packages)}]",
        "",
        "[tool.uv]",
        "package = false",
    ]
    carried = [(package.distribution.name, package.wheel[0]) for package in packages if package.wheel is not None]
    if carried:
        lines += ["", "[tool.uv.sources]"]
        lines += [f"{_text(package)} = {{ path = {_text(f'wheels/{file}')} }}" for package, file in carried]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
