"""How a client of somebody else's is told about our servers."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

HTTP_URL = "http://127.0.0.1:8000"


def own_command() -> list[str]:
    """How this installation is run from anywhere, by absolute paths: a client's working folder and PATH are its own."""
    script = Path(sys.executable).with_name("mcpgym.exe" if sys.platform == "win32" else "mcpgym")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "mcpgym_clients"]


def typed(*words: str) -> str:
    """A command of this installation as a person here types it: by its name where the shell finds it."""
    own = own_command()
    found = shutil.which("mcpgym")
    if found is not None and Path(found).absolute() == Path(own[0]).absolute():
        own = ["mcpgym"]
    elif Path(own[0]).is_relative_to(Path.cwd()):
        own = [str(Path(own[0]).relative_to(Path.cwd())), *own[1:]]
    return shlex.join([*own, *words])


def stdio_command(environments: Sequence[str] = ()) -> list[str]:
    """The command of a stdio server."""
    return [*own_command(), "serve", *environments, "--stdio"]


def claude_stdio(name: str, environments: Sequence[str] = ()) -> str:
    """What adds a stdio server to Claude Code."""
    return shlex.join(["claude", "mcp", "add", name, "--", *stdio_command(environments)])


def claude_http(name: str) -> str:
    """What adds a running HTTP server to Claude Code."""
    return shlex.join(["claude", "mcp", "add", "--transport", "http", name, f"{HTTP_URL}/mcp"])


def client_json(name: str) -> str:
    """The entry that most clients' configuration files take for a stdio server."""
    command, *arguments = stdio_command()
    return json.dumps({"mcpServers": {name: {"command": command, "args": arguments}}}, ensure_ascii=False)
