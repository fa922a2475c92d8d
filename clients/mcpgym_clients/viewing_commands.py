"""The commands that show what a run did. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command()(show)
    app.command()(view)


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


def view(
    paths: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders with runs in them or below, or traces.jsonl files.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to serve on; 0 takes a free one.")] = 0,
    open_page: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write one file that has all in it, and serve nothing.")
    ] = None,
    max_traces: Annotated[
        int | None,
        typer.Option(min=1, help="With --export, traces of a run that can be read in it; 2000 by default."),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option("--environment", metavar="module:Class", help="Know the game of an environment not installed."),
    ] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option("--model", metavar="DIR", help="A model's folder, to show the tokens it sampled as text."),
    ] = None,
) -> None:
    """Look at runs in the browser: scores, curves, comparisons, and every trace, with the value of each legal move."""
    from mcpgym_clients.viewer.command import ViewOptions, run

    work_begins()

    code = run(ViewOptions(paths, port, open_page, export, max_traces, environment or [], model or []))
    raise typer.Exit(code)
