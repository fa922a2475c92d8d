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
    app.command("stress")(stress)
    app.command("scan")(scan)


Calls = Annotated[
    list[str] | None,
    typer.Option("--call", metavar="TOOL=JSON", help="A call that may be made, and the only ones then; repeatable."),
]


def doctor(
    subject: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="URL|ENV|-- COMMAND…",
            help="An MCP server's address, an environment, or a command for stdio after --.",
        ),
    ] = None,
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
    place: Annotated[
        list[str] | None,
        typer.Option("--place", metavar="URL", help="Another URL of it, with a fresh state of its own; four or more."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds an answer may take.")] = 10.0,
    config: Configuration = None,
    sandbox: Annotated[
        bool,
        typer.Option(
            "--sandbox", help="Examine this machine instead: what environments (those named, or all) need to run here."
        ),
    ] = False,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the report as JSON.")] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Also write the report as Markdown.")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="What the reports call the server.")] = "",
) -> None:
    """Examine any MCP server: eras, schemas, errors, isolation, retries, leaks; exit 1 when a check fails.

    With --sandbox, this machine: what keeps code in here, and which of it would be taken; exit 1 where nothing does.
    """
    if sandbox:
        from mcpgym_clients.doctor import machine
        from mcpgym_clients.failures import UsageProblem

        given = (calls, read_only, slow, quick, sessions, only, header, place, config, markdown, title)
        if any(given):
            raise UsageProblem("--sandbox examines this machine: name environments or nothing, and --json at most")
        work_begins()
        raise typer.Exit(machine.run(subject or (), json))
    from mcpgym_clients.doctor.running import DoctorOptions, run

    work_begins()

    code = run(
        DoctorOptions(
            subject=subject or (),
            json=json,
            markdown=markdown,
            title=title,
            quick=quick,
            sessions=sessions,
            calls=calls or (),
            slow=slow,
            read_only=read_only,
            headers=header or (),
            places=place or (),
            timeout=timeout,
            config=config or (),
            only=only or (),
        )
    )
    raise typer.Exit(code)


def scan(
    name: Annotated[
        str, typer.Argument(metavar="ENV|URL", help="An environment (or module:Class), or the URL of a running server.")
    ],
    config: Configuration = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed plants the same canaries and plays alike.")] = 0,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="PLACE", help="What is hidden and may be seen, as info.difficulty; repeatable."
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="PART", help="Do this alone, as play, routes or stdio; repeatable."),
    ] = None,
    canary: Annotated[
        list[str] | None,
        typer.Option(
            "--canary",
            metavar="TEXT",
            help="With a URL: a text or number that no answer may hold; repeatable. Or MCPGYM_SCAN_CANARIES, by lines.",
        ),
    ] = None,
    play: Annotated[
        bool, typer.Option("--play", help="With a URL: call its tools too, with random arguments that fit.")
    ] = False,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME: VALUE", help="With a URL: a header for each request.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the report as JSON.")] = None,
) -> None:
    """Look for leaks: plant canaries in all that a player must not see, play, attack, search; exit 1 on any.

    It sends what an attacker would: scan a running server only if you may disturb it.
    """
    from mcpgym_clients.scanning.command import run

    work_begins()

    run(
        name,
        config=config or (),
        seed=seed,
        only=only or (),
        allow=allow or (),
        canaries=canary or (),
        play=play,
        headers=header or (),
        json_file=json,
    )


def stress(
    subject: Annotated[str, typer.Argument(metavar="URL|ENV", help="An MCP server's address, or an environment.")],
    seconds: Annotated[float, typer.Option(min=0.5, max=3600, help="How long.")] = 10.0,
    concurrency: Annotated[int, typer.Option(min=1, max=2000, help="Connections, each with one call at a time.")] = 32,
    episodes: Annotated[
        int | None, typer.Option(min=1, help="End once so many whole episodes (or sessions) were played.")
    ] = None,
    calls: Calls = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME: VALUE", help="A header for each request to a URL.")
    ] = None,
    config: Configuration = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Also write the figures as JSON.")] = None,
) -> None:
    """Load a server: calls and episodes a second, latency, CPU, memory, beside a bare JSON endpoint as the limit."""
    from mcpgym_clients.stress.running import StressOptions, run

    work_begins()

    code = run(
        StressOptions(
            subject=subject,
            episodes=episodes,
            concurrency=concurrency,
            seconds=seconds,
            calls=calls or (),
            headers=header or (),
            config=config or (),
            json=json,
        )
    )
    raise typer.Exit(code)
