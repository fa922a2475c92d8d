"""Options that several commands have, written down once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Configuration = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="NAME=VALUE", help="Set a field of the environment's configuration."),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="ADDRESS",
        help="Use a running server: its address, or its control plane's (unix:/path, http://host:port).",
    ),
]
Servers = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="ADDRESS",
        help="Use a running server: its address, or its control plane's (unix:/path, http://host:port). Given several "
        "times, or as @FILE with one a line, episodes are spread over all of them; ray is all of mcpgym serve --ray.",
    ),
]
SecretFile = Annotated[
    Path | None,
    typer.Option("--secret-file", help="File with the control plane's secret. Or set MCPGYM_CONTROL_SECRET."),
]
TaskId = Annotated[str | None, typer.Option("--task", help="The task, by its id.")]
Split = Annotated[str | None, typer.Option("--split", help="The split to take the task from.")]
Index = Annotated[int | None, typer.Option("--index", min=0, help="The task's place in its split, from 0.")]
