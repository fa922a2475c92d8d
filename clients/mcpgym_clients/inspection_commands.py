"""The commands that look for leaks in an environment, and for faults in any MCP server.

As in ``cli``, each one's work is imported when it is run.
"""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
