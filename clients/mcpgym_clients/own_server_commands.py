"""The command that serves a program that speaks MCP as an environment. As in ``cli``, its work is imported later."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients.command_options import Configuration
from mcpgym_clients.starting import work_begins

Tasks = Annotated[
    Path | None,
    typer.Option("--tasks", metavar="FILE.jsonl", help="Tasks for your own server, one JSON object a line."),
]
Rewards = Annotated[
    str | None,
    typer.Option("--rewards", metavar="MODULE", help="Rewards for it: a module of functions under @mcpgym.reward."),
]
FastMCP = Annotated[
    str | None,
    typer.Option(
        "--fastmcp",
        metavar="MODULE:FACTORY",
        help="Serve your own server: a function that makes one FastMCP or official-SDK server for each episode.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command(context_settings={"allow_interspersed_args": False})(wrap)


def wrap(
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND…", help="The server's program and its arguments; {seed} is the seed."),
    ],
    name: Annotated[str | None, typer.Option("--name", help="What to call it. Default: from the command.")] = None,
    tasks: Tasks = None,
    rewards: Rewards = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME", help="An environment variable that it gets as it is here; repeatable."),
    ] = None,
    warm: Annotated[
        int | None, typer.Option(min=0, max=64, help="Processes kept ready for the next episodes; 2 by default.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="The players' port, 8000 by default.")] = None,
    control_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Put the control plane on this loopback port.")
    ] = None,
    secret_file: Annotated[Path | None, typer.Option(help="File with the control plane's secret.")] = None,
    stdio: Annotated[bool, typer.Option("--stdio", help="Speak MCP on standard input and output.")] = False,
    config: Configuration = None,
) -> None:
    """Serve any MCP server that speaks stdio as an environment: one process of it for each episode.

    Options of mcpgym go before COMMAND. Other commands take it as stdio:COMMAND in the place of an environment's name,
    as in mcpgym eval "stdio:python my_server.py" …; mcpgym serve takes it so too, with all its options.
    """
    from mcpgym_clients.own_server import brought_config, command_spec
    from mcpgym_clients.serve import ServeOptions, run

    work_begins()

    spec = command_spec(command, name)
    more = {"env": ",".join(env or []), "warm": "" if warm is None else str(warm)}
    options = ServeOptions(
        environments=[spec],
        host="127.0.0.1",
        port=port,
        allowed_hosts=[],
        control_port=control_port,
        control_socket=None,
        secret_file=secret_file,
        signing_key=None,
        stdio=stdio,
        task=None,
        split=None,
        index=None,
        seed=None,
        config=[*(config or []), *brought_config([spec], tasks, rewards, more)],
        max_episodes=10_000,
        idle_seconds=None,
        episode_urls_only=False,
        fast_lane=True,
    )
    raise typer.Exit(run(options))
