"""The commands that show what a run did, and what a server does.

As in ``cli``, each one's work is imported when it is run.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import SecretFile
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.starting import work_begins


class Only(StrEnum):
    """Which traces are worth looking at."""

    BAD = "bad"
    UNSCORED = "unscored"
    PENALISED = "penalised"
    ERRORS = "errors"
    MISTAKES = "mistakes"


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command()(show)
    app.command()(view)
    app.command()(top)


def show(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="A run's folder, or folders of runs.")],
    index: Annotated[
        int | None, typer.Option("--index", "-i", help="Only this trace; from 0, or from the end: -1.")
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only lost, unscored and worst-paid episodes: what to look into.")
    ] = False,
    only: Annotated[
        Only | None, typer.Option(help="Only traces like this. bad is what --failed means; mistakes are losing moves.")
    ] = None,
    outcome: Annotated[str | None, typer.Option(help="Only games that ended so: win, draw, loss, unfinished.")] = None,
    stop: Annotated[str | None, typer.Option(help="Only rollouts that ended for this reason.")] = None,
    task: Annotated[str | None, typer.Option(help="Only episodes of this task.")] = None,
    search: Annotated[str | None, typer.Option(metavar="TEXT", help="Only traces in which this is said.")] = None,
    order: Annotated[
        str, typer.Option(metavar="KEY", help="place, total, turns or mistakes; -total has the largest first.")
    ] = "place",
    values: Annotated[bool, typer.Option(help="Say what each legal move was worth, where the game is known.")] = True,
    environment: Annotated[
        list[str] | None,
        typer.Option("--environment", metavar="module:Class", help="Know the game of an environment not installed."),
    ] = None,
) -> None:
    """Read runs in the terminal: a table of several; of one its summary and traces."""
    from mcpgym_clients.show import ShowOptions, run
    from mcpgym_clients.viewer.selecting import Selection

    work_begins()

    if failed and only not in (None, Only.BAD):
        raise UsageProblem("--failed is --only bad: give one of the two")
    query = {
        "only": "bad" if failed else only.value if only is not None else "",
        "outcome": outcome or "",
        "stop": (stop or "").replace(" ", "_"),
        "task": task or "",
        "q": search or "",
        "order": order,
    }
    run(ShowOptions(paths, index, Selection.of(query), values, environment or []))


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


def top(
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="ADDRESS",
            help="The server's address, or its control plane's (unix:/path, http://host:port). "
            "Default: http://127.0.0.1:8000.",
        ),
    ] = None,
    secret_file: SecretFile = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, max=3600, help="How often to look.")
    ] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show what happened in one interval, and end.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, an object a line, for programs.")] = False,
) -> None:
    """Watch a running server: episodes, calls a second, how long they take, errors, memory, the event loop's lag."""
    from mcpgym_clients.top.command import TopOptions, run

    work_begins()

    raise typer.Exit(run(TopOptions(server, secret_file, interval, once, json)))
