"""The commands for environments of one's own. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration
from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command("new")(new)
    group = typer.Typer(help="Describe an environment of yours to others.", no_args_is_help=True)
    group.command("card")(card)
    app.add_typer(group, name="env")


def new(
    name: Annotated[str, typer.Argument(help="What the environment is called, such as my-game.")],
    template: Annotated[
        str, typer.Option("--template", "-t", help="game, search, sandbox, single-turn or fastmcp.")
    ] = "game",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="The folder; NAME by default.")] = None,
) -> None:
    """Write a package with an environment of your own, which works before you change anything."""
    from mcpgym_clients.scaffolding.command import run

    work_begins()

    run(name, template, out)


def card(
    name: Annotated[str, typer.Argument(help="The environment.")],
    episodes: Annotated[
        int, typer.Option("-n", min=0, max=10_000, help="How many episodes its own policies play each; 0 for none.")
    ] = 50,
    write: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put it between the marks <!-- card --> of this file.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Exit with 1 if this file's card is not the one of now.")
    ] = None,
    config: Configuration = None,
) -> None:
    """Describe an environment on a page: tasks, tools, rewards, what its own policies are paid, and a rollout."""
    from mcpgym_clients.cards.command import run

    work_begins()

    run(name, config or [], episodes, write, check)
