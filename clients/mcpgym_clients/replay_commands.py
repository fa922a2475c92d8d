"""The command that plays recorded rollouts again. As in ``cli``, each one's work is imported when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import SecretFile, Server
from mcpgym_clients.evaluation_commands import LaneName
from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command()(replay)


def replay(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH", help="A run's folder, a folder of runs, or a file of traces.")
    ],
    index: Annotated[
        int | None, typer.Option("--index", "-i", help="Only this trace; from 0, or from the end: -1.")
    ] = None,
    environments: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="MODULE:CLASS", help="Where an environment is that no package registers."),
    ] = None,
    server: Server = None,
    secret_file: SecretFile = None,
    lane: Annotated[
        LaneName | None,
        typer.Option(help="Calls over MCP, or over the control plane alone. Default: mcp with --server, else control."),
    ] = None,
    score_tolerance: Annotated[
        float, typer.Option(min=0, help="By how much scores may differ; not at all by default.", show_default=False)
    ] = 0.0,
    concurrency: Annotated[int, typer.Option(min=1, help="Replays at once.")] = 16,
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Open what the traces' configuration names: files, folders, endpoints."),
    ] = False,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write every result to this file.")
    ] = None,
) -> None:
    """Play recorded calls again on fresh episodes; compare every answer and the score."""
    from mcpgym_clients.replaying import ReplayOptions, run

    work_begins()

    code = run(
        ReplayOptions(
            paths=paths,
            index=index,
            environments=environments or [],
            server=server,
            secret_file=secret_file,
            lane=None if lane is None else lane.value,
            score_tolerance=score_tolerance,
            concurrency=concurrency,
            trust=trust,
            json=json,
        )
    )
    raise typer.Exit(code)
