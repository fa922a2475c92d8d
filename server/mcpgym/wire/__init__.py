"""How players reach episodes over MCP: an ASGI app for HTTP, and stdio.

Read it in this order: :mod:`~mcpgym.wire.players` (what one URL may do), :mod:`~mcpgym.wire.mcp_server` (that, as an
MCP server of the official SDK), :mod:`~mcpgym.wire.app` (URLs, checks, disconnects), :mod:`~mcpgym.wire.fast_lane`.
"""

from __future__ import annotations

from mcpgym.wire.app import PlayerApp, player_app

__all__ = ["PlayerApp", "player_app"]
