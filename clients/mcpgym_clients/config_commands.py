"""The commands about configuration. As in ``cli``, their work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    group = typer.Typer(help="What configures the other commands: a file, and variables.", no_args_is_help=True)
    group.command("show")(show)
    group.command("check")(check)
    app.add_typer(group, name="config")


def show(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND]", help="All options of this one, defaults too: eval, env add."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show what options are set to, and by what: a line of a file, a variable, or the default; no secrets."""
    from mcpgym_clients.configuring.showing import run

    work_begins()

    run(command or [], context.find_root().params["config_file"], as_json=json)


def check(
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(help="A file; by default those that count here.")] = None,
) -> None:
    """Say everything that is wrong with a configuration, and what would be right; exit 1 where something is."""
    from mcpgym_clients.configuring.checking import run

    work_begins()

    raise typer.Exit(run(file or context.find_root().params["config_file"]))
