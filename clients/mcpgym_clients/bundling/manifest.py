"""``manifest.json`` of an MCP Bundle, version 0.4: what a client shows before it installs, and how it starts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution
from typing import Any
from urllib.parse import urlsplit

from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.wire.bare import BarePlayer, Handles
from mcpgym.wire.players import title_of
from mcpgym_clients.bundling.distributions import said_of

VERSION = "0.4"
"""The first version that knows servers which uv runs."""
ENTRY = "src/server.py"
ICON = "icon.png"


def manifest(
    environment: Environment[Any, Any, Any], home: Distribution, form: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The manifest.

    Args:
        environment: what is played.
        home: its package.
        form: what a person may change.
    """
    filled_in = [f"{name}=${{user_config.{name}}}" for name in form]
    made: dict[str, Any] = {
        "manifest_version": VERSION,
        "name": environment.name,
        "display_name": title_of(environment.name),
        "version": home.version,
        "description": environment.description or title_of(environment.name),
        "author": {"name": _author(home)},
        "icon": ICON,
        "server": {
            "type": "uv",
            "entry_point": ENTRY,
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", ENTRY, *filled_in],
                "env": {},
            },
        },
        "tools": [{"name": tool["name"], "description": tool["description"]} for tool in _tools(environment)],
        "prompts_generated": True,
    }
    if environment.instructions:
        made["long_description"] = environment.instructions
    if keywords := [word.strip() for word in said_of(home, "Keywords").split(",") if word.strip()]:
        made["keywords"] = keywords
    if licence := said_of(home, "License-Expression"):
        made["license"] = licence
    if (homepage := _homepage(home.metadata.get_all("Project-URL") or ())) is not None:
        made["homepage"] = homepage
    if form:
        made["user_config"] = {name: dict(field) for name, field in form.items()}
    made["_meta"] = {
        "mcpgym": {
            "environment": environment.name,
            "environment_version": environment.version,
            "schema_hash": environment.schema_hash,
            "config": environment.config.model_dump(mode="json"),
        }
    }
    return made


def _tools(environment: Environment[Any, Any, Any]) -> Sequence[Mapping[str, Any]]:
    """The tools as the server will list them: each takes an episode, and one starts it."""
    episodes = Episodes({environment.name: environment})
    return BarePlayer(episodes, Handles(episodes), [environment.name]).tools()


def _author(home: Distribution) -> str:
    for field in ("Author", "Author-email", "Maintainer", "Maintainer-email"):
        if written := said_of(home, field).partition("<")[0].strip():
            return written
    return f"the authors of {home.name}"


def _homepage(urls: Sequence[str]) -> str | None:
    for entry in urls:
        label, _, url = entry.partition(",")
        if label.strip().lower() in ("homepage", "home", "repository", "source") and urlsplit(url.strip()).netloc:
            return url.strip()
    return None
