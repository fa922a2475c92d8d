"""The commands that write an environment for other frameworks. As in ``cli``, their work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration
from mcpgym_clients.starting import work_begins

Environment = Annotated[str, typer.Argument(metavar="ENV", help="What to export.")]
TheSplit = Annotated[str | None, typer.Option("--split", help="The split that is played; test by default.")]
Seed = Annotated[int, typer.Option("--seed", help="The seed of every episode.")]
Address = Annotated[
    str | None,
    typer.Option("--server", metavar="ADDRESS", help="Where its server will be: http://127.0.0.1:8000 by default."),
]


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    group = typer.Typer(help="Write an environment for other trainers and evaluators.", no_args_is_help=True)
    group.command("verifiers")(verifiers)
    group.command("inspect")(inspect)
    app.add_typer(group, name="export")


def verifiers(
    environment: Environment,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The folder, which is not there yet.")],
    split: TheSplit = None,
    seed: Seed = 0,
    config: Configuration = None,
    server: Address = None,
    name: Annotated[str | None, typer.Option("--name", help="What the package is called: mcpgym-ENV.")] = None,
) -> None:
    """Write an installable package for verifiers 0.4 and prime-rl, which plays on a server of mcpgym."""
    from mcpgym_clients.exporting.command import ExportOptions, export_verifiers

    work_begins()

    export_verifiers(ExportOptions(environment, out, split, seed, config or [], server, name))


def inspect(
    environment: Environment,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.py", help="The file.")],
    split: TheSplit = None,
    seed: Seed = 0,
    config: Configuration = None,
    server: Address = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a task file for Inspect AI, which plays on a server of mcpgym."""
    from mcpgym_clients.exporting.command import ExportOptions, export_inspect

    work_begins()

    export_inspect(ExportOptions(environment, out, split, seed, config or [], server, force=force))
