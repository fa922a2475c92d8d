"""The command that serves environments. As in ``cli``, its work is imported when it is run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mcpgym_clients import own_server_commands
from mcpgym_clients.command_options import Configuration, Index, Split, TaskId
from mcpgym_clients.starting import work_begins


class LogFormat(StrEnum):
    """How ``serve`` writes its log."""

    TEXT = "text"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command()(serve)


def serve(
    environments: Annotated[
        list[str] | None, typer.Argument(metavar="[ENV]…", help="What to serve; everything installed by default.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where players connect. Anything but loopback is open to others.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="The players' port, 8000 by default; 0 takes a free one.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option("--allowed-host", metavar="HOST[:PORT]", help="A further Host header to accept (a proxy's name)."),
    ] = None,
    control_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Put the control plane on this loopback port, not on a unix socket."),
    ] = None,
    control_socket: Annotated[Path | None, typer.Option(help="Path of the control plane's unix socket.")] = None,
    control_host: Annotated[
        str | None,
        typer.Option(
            help="With --control-port: where it listens. Anything but loopback is open to who has the secret."
        ),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="What players call this server, where a proxy or a cluster stands before it."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Serve by so many processes behind the one port.")] = 1,
    ray: Annotated[
        bool, typer.Option("--ray", help="Serve by --workers servers on the nodes of a Ray cluster: mcpgym[ray].")
    ] = False,
    ray_address: Annotated[
        str | None, typer.Option(help="With --ray: the cluster; by default RAY_ADDRESS, or one on this machine.")
    ] = None,
    cpus_per_server: Annotated[float, typer.Option(min=0.0, help="With --ray: CPUs reserved for each server.")] = 1.0,
    name: Annotated[
        str,
        typer.Option(help="This server's name among others: its episodes' tokens begin with it.", show_default=False),
    ] = "",
    drain_seconds: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="After SIGTERM, let running episodes end for so long, and begin no other: 25 with --workers, else 0.",
        ),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the control plane's secret. Or set MCPGYM_CONTROL_SECRET; else one is made and shown."
        ),
    ] = None,
    signing_key: Annotated[
        Path | None,
        typer.Option("--signing-key", help="File of the key that signs scores; yours by default (see: mcpgym key)."),
    ] = None,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Speak MCP on standard input and output, as desktop clients want it.")
    ] = False,
    task: TaskId = None,
    split: Split = None,
    index: Index = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The seed of the episode; 0 by default.")] = None,
    config: Configuration = None,
    max_episodes: Annotated[int, typer.Option(min=1, help="The cap on live episodes.")] = 10_000,
    idle_seconds: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="End an episode after this long without a call: 1800; never where the process is one episode.",
        ),
    ] = None,
    episode_urls_only: Annotated[
        bool,
        typer.Option(
            "--episode-urls-only",
            help="No /mcp: players cannot start episodes, and reach those alone that the control plane opened.",
        ),
    ] = False,
    no_fast_lane: Annotated[
        bool, typer.Option("--no-fast-lane", help="Answer every request through the SDK (slower, same answers).")
    ] = False,
    log_format: Annotated[
        LogFormat, typer.Option(help="json: an object a line, with every episode and call; no secrets, no texts.")
    ] = LogFormat.TEXT,
    fastmcp: own_server_commands.FastMCP = None,
    tasks: own_server_commands.Tasks = None,
    rewards: own_server_commands.Rewards = None,
) -> None:
    """Serve environments over MCP: HTTP on loopback, or stdio.

    With --stdio and a task (--task, or --split and --index) the process is one episode.
    """
    from mcpgym_clients.own_server import brought_config, factory_spec
    from mcpgym_clients.serve import ServeOptions, run

    work_begins()

    served = [*(environments or []), *([factory_spec(fastmcp)] if fastmcp is not None else [])]
    code = run(
        ServeOptions(
            environments=served,
            host=host,
            port=port,
            allowed_hosts=allowed_host or [],
            control_port=control_port,
            control_socket=control_socket,
            secret_file=secret_file,
            signing_key=signing_key,
            stdio=stdio,
            task=task,
            split=split,
            index=index,
            seed=seed,
            config=[*(config or []), *brought_config(served, tasks, rewards)],
            max_episodes=max_episodes,
            idle_seconds=idle_seconds,
            episode_urls_only=episode_urls_only,
            fast_lane=not no_fast_lane,
            json_log=log_format is LogFormat.JSON,
            workers=workers,
            name=name,
            drain_seconds=drain_seconds,
            control_host=control_host,
            public_url=public_url,
            ray=ray,
            ray_address=ray_address,
            cpus_per_server=cpus_per_server,
        )
    )
    raise typer.Exit(code)
