"""The commands that show what a run did. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command()(show)


def show(
    path: Annotated[Path, typer.Argument(help="A run's folder, or a traces.jsonl.")],
    index: Annotated[
        int | None, typer.Option("--index", "-i", help="Only this trace; from 0, or from the end: -1.")
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only lost, unscored and worst-paid episodes: what to look into.")
    ] = False,
) -> None:
    """Read the traces of a run."""
    from mcpgym_clients.show import run

    work_begins()

    run(path, index, failed)
