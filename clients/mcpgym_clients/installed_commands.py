"""The commands about the environments that are installed. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration
from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command("list")(list_command)
    app.command()(check)


def list_command(
    name: Annotated[str | None, typer.Argument(help="Say all about this environment.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the installed environments, or everything about one."""
    from mcpgym_clients.listing import list_environments

    work_begins()

    list_environments(name, json)


def check(
    name: Annotated[str, typer.Argument(help="The environment to check.")],
    config: Configuration = None,
) -> None:
    """Check that an environment keeps its contract; exit 1 when it does not."""
    from mcpgym_clients.checking import check_one

    work_begins()

    check_one(name, config or [])
