"""The commands that check signed scores. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import SecretFile
from mcpgym_clients.starting import work_begins

Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--key", "-k", metavar="PUBKEY", help="A server's public key (ed25519:…), or a file with it; yours by default."
    ),
]


class BoardFormat(StrEnum):
    """How a leaderboard is written."""

    MARKDOWN = "markdown"
    JSON = "json"
    HTML = "html"


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command("key")(key)
    app.command("verify")(verify)
    app.command("leaderboard")(leaderboard)


def key(
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A signing key; yours by default.")] = None,
    new: Annotated[Path | None, typer.Option("--new", metavar="FILE", help="Make a new key in this file.")] = None,
) -> None:
    """Show the public key of what signs scores; yours is made when it is first needed."""
    from mcpgym_clients.signing import show_key

    work_begins()

    show_key(file, new)


def verify(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="Receipts, traces, or folders of runs that hold them.")
    ],
    keys: Keys = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Play the traces again: the log and the score must be those signed.")
    ] = False,
    server: Annotated[
        str | None, typer.Option("--server", metavar="ADDRESS", help="With --replay: on this running server.")
    ] = None,
    secret_file: SecretFile = None,
    environments: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="MODULE:CLASS", help="With --replay: an environment that no package registers."),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="With --replay: open what the traces' configuration names: files, endpoints."),
    ] = False,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write what was found to this file.")
    ] = None,
) -> None:
    """Check that scores are what a server signed; exit 1 when any is not."""
    from mcpgym_clients.verifying import VerifyOptions, run

    work_begins()

    raise typer.Exit(
        run(VerifyOptions(paths, keys or [], replay, server, secret_file, json, environments or [], trust))
    )


def leaderboard(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Folders of runs, or files of receipts.")],
    keys: Keys = None,
    format: Annotated[BoardFormat, typer.Option("--format", help="How it is written.")] = BoardFormat.MARKDOWN,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where; standard output by default.")
    ] = None,
) -> None:
    """Make a table of scores from receipts that hold, and from nothing else."""
    from mcpgym_clients.leaderboard import run

    work_begins()

    raise typer.Exit(run(paths, keys or [], format.value, out))
