"""The clients that ``mcpgym connect`` knows: where each keeps its servers on each platform, and in which form.

Checked against each client's own documentation in November 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Machine:
    """What decides where files lie: the platform, the home folder, environment variables, and what folders there are.

    ``folders(parent, pattern)`` gives the paths in a folder that match; only a packaged Claude Desktop asks.
    """

    platform: str
    home: PurePath
    environment: Mapping[str, str] = field(default_factory=dict)
    folders: Callable[[PurePath, str], list[PurePath]] = field(default=lambda parent, pattern: [])

    @property
    def is_windows(self) -> bool:
        """Whether paths and commands are Windows' own."""
        return self.platform == "win32"

    def path(self, text: str) -> PurePath:
        """A path in this platform's form."""
        return PureWindowsPath(text) if self.is_windows else PurePosixPath(text)

    @property
    def settings(self) -> PurePath:
        """Where desktop programs keep a user's settings."""
        if self.is_windows:
            return self.folder("APPDATA", self.home / "AppData" / "Roaming")
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.folder("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def local_settings(self) -> PurePath:
        """Where Windows keeps what stays on one machine."""
        return self.folder("LOCALAPPDATA", self.home / "AppData" / "Local")

    def folder(self, variable: str, default: PurePath) -> PurePath:
        """A folder that an environment variable may name, by an absolute path."""
        value = self.environment.get(variable, "")
        path = self.path(value)
        return path if value and path.is_absolute() else default


@dataclass(frozen=True, slots=True)
class Server:
    """The server to connect: a command with its arguments, or the URL of one that runs."""

    command: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str = ""


@dataclass(frozen=True, slots=True)
class KnownClient:
    """One client.

    ``file`` is the user's own configuration, ``project`` a project's (a path below it) where there is one; ``section``
    is the key that the servers stand under. ``types`` says whether an entry names its transport, and how; ``url_key``
    is the key of a URL, None for a client whose file holds commands only. ``afterwards`` says what to do then.
    """

    name: str
    title: str
    section: str
    file: Callable[[Machine], PurePath]
    afterwards: str
    project: str = ""
    format: Literal["json", "toml"] = "json"
    types: Mapping[str, str] = field(default_factory=dict)
    url_key: str | None = "url"

    def entry(self, server: Server) -> dict[str, Any]:
        """What the client's file says of ``server``.

        Raises:
            ValueError: it is a URL, and this client's file holds commands only.
        """
        if server.url:
            if self.url_key is None:
                raise ValueError(f"{self.title} keeps commands in its file, not URLs")
            kind = self.types.get("http")
            return {**({"type": kind} if kind else {}), self.url_key: server.url}
        kind = self.types.get("stdio")
        entry: dict[str, Any] = {"type": kind} if kind else {}
        entry |= {"command": server.command, "args": list(server.arguments)}
        return {**entry, "env": dict(server.environment)} if server.environment else entry


def _claude_desktop(machine: Machine) -> PurePath:
    """Installed from the Store, Claude Desktop reads a copy of its settings inside its package."""
    if machine.is_windows:
        for package in machine.folders(machine.local_settings / "Packages", "Claude_*"):
            return package / "LocalCache" / "Roaming" / "Claude" / "claude_desktop_config.json"
    return machine.settings / "Claude" / "claude_desktop_config.json"


def _claude_code(machine: Machine) -> PurePath:
    return machine.folder("CLAUDE_CONFIG_DIR", machine.home) / ".claude.json"


CLIENTS = (
    KnownClient(
        "claude-desktop",
        "Claude Desktop",
        "mcpServers",
        _claude_desktop,
        "Quit Claude Desktop (the window alone is not enough) and start it again.",
        url_key=None,
    ),
    KnownClient(
        "claude-code",
        "Claude Code",
        "mcpServers",
        _claude_code,
        "Start claude anew; /mcp shows the server. Claude Code looks up the tools of servers when it needs them "
        "(ToolSearch): if the model says that it has no such tool, set ENABLE_TOOL_SEARCH=false before you start it.",
        project=".mcp.json",
        types={"stdio": "stdio", "http": "http"},
    ),
    KnownClient(
        "cursor",
        "Cursor",
        "mcpServers",
        lambda machine: machine.home / ".cursor" / "mcp.json",
        "Restart Cursor and switch the server on under Customize, MCPs.",
        project=".cursor/mcp.json",
    ),
    KnownClient(
        "vscode",
        "VS Code",
        "servers",
        lambda machine: machine.settings / "Code" / "User" / "mcp.json",
        'Run "MCP: List Servers" in VS Code, start the server, and ask in agent mode.',
        project=".vscode/mcp.json",
        types={"stdio": "stdio", "http": "http"},
    ),
    KnownClient(
        "codex",
        "Codex CLI",
        "mcp_servers",
        lambda machine: machine.folder("CODEX_HOME", machine.home / ".codex") / "config.toml",
        "Start codex anew; /mcp shows the server.",
        project=".codex/config.toml",
        format="toml",
    ),
    KnownClient(
        "gemini",
        "Gemini CLI",
        "mcpServers",
        lambda machine: machine.home / ".gemini" / "settings.json",
        "Start gemini anew; /mcp shows the server.",
        project=".gemini/settings.json",
        url_key="httpUrl",
    ),
    KnownClient(
        "json",
        "any other client",
        "mcpServers",
        lambda machine: machine.path("mcp.json"),
        "Put this where your client wants it.",
        types={"stdio": "stdio", "http": "http"},
    ),
)


def known_client(name: str) -> KnownClient | None:
    """The client of this name, however it is written: ``claude-code``, ``Claude Code``, ``claude_code``."""
    wanted = "".join(filter(str.isalnum, name.lower()))
    return next((client for client in CLIENTS if "".join(filter(str.isalnum, client.name)) == wanted), None)
