"""The command that makes a bundle for desktop clients. As in ``cli``, its work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(bundle)


def bundle(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="What to play there.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.mcpb", help="The file. Default: ENV.mcpb.", show_default=False)
    ] = None,
    config: Configuration = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--setting", metavar="NAME", help="Let a person change this field in the client; by default, every one."
        ),
    ] = None,
    no_settings: Annotated[bool, typer.Option("--no-settings", help="Let a person change nothing.")] = False,
    extra: Annotated[
        list[str] | None,
        typer.Option("--extra", metavar="NAME", help="Install this extra of the environment's package (as: wiki)."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Make an .mcpb file: an environment that Claude Desktop and other clients install with a double click."""
    from mcpgym_clients.bundling.command import BundleOptions, run

    work_begins()

    if setting and no_settings:
        raise UsageProblem("--setting offers a field and --no-settings none: leave one of them out")
    run(BundleOptions(environment, out, config or [], [] if no_settings else setting, extra or [], force))
