"""Bring your own server: environments over FastMCP servers, the official SDK's, and any program that speaks stdio.

Read it in this order: ``environment`` and ``fastmcp_environment`` (what an author subclasses), ``factories``,
``connection`` (asking one), ``listing`` and ``shapes`` (its tools at the fixed point), ``contents`` (its results as
text); then ``stdio_environment``, ``pool``, ``processes``, ``keeper`` and ``transport`` (servers as processes); last
``naming``, ``specs``, ``task_file`` and ``rubric`` (the same without writing a class).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcpgym.own_server.environment import ServerEpisode
    from mcpgym.own_server.fastmcp_environment import FastMCPEnvironment
    from mcpgym.own_server.stdio_environment import StdioEnvironment

__all__ = ["FastMCPEnvironment", "ServerEpisode", "StdioEnvironment"]


def __getattr__(name: str) -> Any:
    if name == "ServerEpisode":
        from mcpgym.own_server.environment import ServerEpisode

        return ServerEpisode
    if name == "FastMCPEnvironment":
        from mcpgym.own_server.fastmcp_environment import FastMCPEnvironment

        return FastMCPEnvironment
    if name == "StdioEnvironment":
        from mcpgym.own_server.stdio_environment import StdioEnvironment

        return StdioEnvironment
    raise AttributeError(f"module 'mcpgym.own_server' has no attribute {name!r}")
