"""The command that connects a person's client. As in ``cli``, its work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration, Index, Split, TaskId
from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(connect)


def connect(
    client: Annotated[
        str,
        typer.Argument(help="claude-desktop, claude-code, cursor, vscode, codex, gemini, or json for any other."),
    ],
    environments: Annotated[
        list[str] | None, typer.Argument(metavar="ENVIRONMENT...", help="What to play there, by stdio.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Connect to a server that runs, instead of starting one.")
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Put it into the client's file. What was there is kept, and a copy of it.")
    ] = False,
    project: Annotated[
        bool, typer.Option("--project", help="In this folder's configuration, not the user's own.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The client's file, where it is not in its usual place.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the client calls it. Default: the environment's name.")] = None,
    task: TaskId = None,
    split: Split = None,
    index: Index = None,
    seed: Annotated[int | None, typer.Option(min=0, help="The seed of an episode of one task.")] = None,
    config: Configuration = None,
) -> None:
    """Connect an MCP client: show what belongs into its configuration file, or put it there."""
    from mcpgym_clients.connecting.command import ConnectOptions, run

    work_begins()

    run(
        ConnectOptions(
            client, environments or [], url, name, config or [], task, split, index, seed, write, project, file
        )
    )
