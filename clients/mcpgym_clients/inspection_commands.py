"""The commands that look for leaks in an environment, and for faults in any MCP server.

As in ``cli``, each one's work is imported when it is run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration
from mcpgym_clients.starting import work_begins


def register(app: typer.Typer) -> None:
    """Add these commands to ``app``."""
    app.command("doctor")(doctor)


Calls = Annotated[
    list[str] | None,
    typer.Option("--call", metavar="TOOL=JSON", help="A call that may be made, and the only ones then; repeatable."),
]


def doctor(
    subject: Annotated[
        list[str],
        typer.Argument(
            metavar="URL|ENV|-- COMMAND…",
            help="An MCP server's address, an environment, or a command for stdio after --.",
        ),
    ],
    calls: Calls = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Call only tools that declare that they only read.")
    ] = False,
    slow: Annotated[
        str | None, typer.Option("--slow", metavar="TOOL=JSON", help="A call that takes long, to interrupt it.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer sessions, and nothing that waits.")] = False,
    sessions: Annotated[
        int | None, typer.Option(min=1, help="Sessions to look for leaks with; 1000, or 60 with --quick.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="CHECK", help="Make this check; repeatable.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME: VALUE", help="A header for each request to a URL.")
    ] = None,
    second: Annotated[
        str | None, typer.Option("--second", metavar="URL", help="Another URL of the server, with a state of its own.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds an answer may take.")] = 10.0,
    config: Configuration = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the report as JSON.")] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Also write the report as Markdown.")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="What the reports call the server.")] = "",
) -> None:
    """Examine any MCP server: eras, schemas, errors, isolation, retries, leaks; exit 1 when a check fails."""
    from mcpgym_clients.doctor.running import DoctorOptions, run

    work_begins()

    code = run(
        DoctorOptions(
            subject=subject,
            json=json,
            markdown=markdown,
            title=title,
            quick=quick,
            sessions=sessions,
            calls=calls or (),
            slow=slow,
            read_only=read_only,
            headers=header or (),
            second=second,
            timeout=timeout,
            config=config or (),
            only=only or (),
        )
    )
    raise typer.Exit(code)
