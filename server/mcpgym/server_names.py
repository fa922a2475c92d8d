"""What clients call a server: hosts put it before every tool's name, as in ``mcp__tic-tac-toe__play``."""

from __future__ import annotations

from mcpgym.schema import NAME

SERVER = "mcpgym"
"""The name of a server of several environments, and of a combination of them."""


def server_name(environment: str) -> str:
    """What the server of one environment is called: as the environment, where hosts can write its name."""
    return environment if NAME.fullmatch(environment) else SERVER
