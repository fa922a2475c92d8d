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
    group = typer.Typer(help="Environments from elsewhere, and yours for others.", no_args_is_help=True)
    group.command("add")(add)
    group.command("list")(list_added)
    group.command("info")(info)
    group.command("remove")(remove)
    group.command("card")(card)
    group.command("push")(push)
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


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def add(
    spec: Annotated[
        str,
        typer.Argument(help="A package's name (with a version), git+URL, a folder, a wheel or a source archive."),
    ],
    python: Annotated[
        str | None, typer.Option("--python", help="An interpreter or a version for it; the one of mcpgym by default.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="In place of what was added before.")] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Add it although it breaks the contract.")] = False,
    json: AsJson = False,
) -> None:
    """Install a package into a virtual environment of its own; its environments are then found by name, as all are.

    They play in a process of their own, so that what they need cannot clash with what is installed here.
    """
    from mcpgym_clients.sharing.adding import add as add_package

    work_begins()

    add_package(spec, python, replace=replace, anyway=anyway, as_json=json)


def list_added(json: AsJson = False) -> None:
    """Show what was added."""
    from mcpgym_clients.sharing.showing import show_all

    work_begins()

    show_all(json)


def info(
    name: Annotated[str, typer.Argument(help="A package that was added, or an environment in one.")],
    json: AsJson = False,
) -> None:
    """Show where something that was added came from, where it is, and how it stands."""
    from mcpgym_clients.sharing.showing import show_one

    work_begins()

    show_one(name, json)


def remove(name: Annotated[str, typer.Argument(help="A package that was added, or an environment in one.")]) -> None:
    """Remove something that was added; what is in use is left alone."""
    from mcpgym_clients.sharing.removing import remove as remove_package

    work_begins()

    remove_package(name)


def push(
    to: Annotated[str, typer.Option("--to", metavar="HUB:OWNER/NAME", help="hf:OWNER/NAME or prime:OWNER.")],
    folder: Annotated[
        Path, typer.Argument(help="The package's folder; for prime, what export verifiers wrote.")
    ] = Path(),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Upload nothing; show what would be.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Make a repository that only you see.")] = False,
    json: AsJson = False,
) -> None:
    """Put a package with an environment on a hub: its wheel, its source archive and its card, and nothing else."""
    from mcpgym_clients.sharing.pushing import push as push_package

    work_begins()

    push_package(folder, to, dry_run=dry_run, private=private, as_json=json)
