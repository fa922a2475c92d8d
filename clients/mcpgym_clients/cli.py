"""The command ``mcpgym``: what may be typed. Each command's work is a module of its own, imported when it is run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from enum import StrEnum
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import typer

from mcpgym_clients import (
    bundling_commands,
    config_commands,
    connecting_commands,
    environment_commands,
    evaluation_commands,
    exporting_commands,
    inspection_commands,
    own_server_commands,
    plain,
    receipt_commands,
    replay_commands,
    training_commands,
    viewing_commands,
)
from mcpgym_clients.command_options import Configuration, Index, SecretFile, Server, Split, TaskId
from mcpgym_clients.configuring.command import ConfiguredCommand
from mcpgym_clients.failures import FAILURE, INTERRUPTED, USAGE, UsageProblem, explain, fail
from mcpgym_clients.starting import work_begins


class LogFormat(StrEnum):
    """How ``serve`` writes its log."""

    TEXT = "text"
    JSON = "json"


CONFIG_FILE = "--config-file"
"""The one option that goes before the command."""

app = typer.Typer(
    name="mcpgym",
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Reinforcement-learning environments that are MCP servers: play them, evaluate on them, train on them.",
    epilog="Start with [cyan]mcpgym demo[/cyan], then [cyan]mcpgym list[/cyan] and "
    "[cyan]mcpgym play tic-tac-toe[/cyan].",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"mcpgym {version('mcpgym')}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
    config_file: Annotated[
        Path | None,
        typer.Option(CONFIG_FILE, metavar="FILE.toml", help="Read this configuration, and no other file."),
    ] = None,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("list")
def list_command(
    name: Annotated[str | None, typer.Argument(help="Say all about this environment.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the installed environments, or everything about one."""
    from mcpgym_clients.listing import list_environments

    work_begins()

    list_environments(name, json)


@app.command()
def check(
    name: Annotated[str, typer.Argument(help="The environment to check.")],
    config: Configuration = None,
) -> None:
    """Check that an environment keeps its contract; exit 1 when it does not."""
    from mcpgym_clients.checking import check_one

    work_begins()

    check_one(name, config or [])


@app.command()
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


@app.command()
def play(
    environment: Annotated[str, typer.Argument(metavar="ENV", help="What to play.")],
    task: TaskId = None,
    split: Split = None,
    index: Index = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The seed of the episode; random by default.")] = None,
    config: Configuration = None,
    server: Server = None,
    secret_file: SecretFile = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Take the opponent's part in a game, against this policy (as in eval)."),
    ] = None,
    seat: Annotated[
        str | None, typer.Option(help="With --against: the policy's seat (first, second); drawn by default.")
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Play in the browser, on a page of this machine's own.")] = False,
    watch: Annotated[
        list[str] | None,
        typer.Option(metavar="POLICY", help="With --web: watch this policy play; given twice, two play each other."),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="With --web: the page's port; a free one by default.")
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="With --web: whether to open the browser.")
    ] = True,
) -> None:
    """Play an environment yourself, through MCP, with what a policy gets; or play against a policy."""
    work_begins()

    if web:
        from mcpgym_clients.play import PlayOptions as Played
        from mcpgym_clients.web_play.command import WebOptions
        from mcpgym_clients.web_play.command import run as play_on_a_page

        played = Played(environment, task, split, index, seed, config or [], server, secret_file)
        raise typer.Exit(play_on_a_page(WebOptions(played, against, watch or [], seat, port or 0, open_page)))
    for name, given in {"--watch": bool(watch), "--port": port is not None, "--no-open": not open_page}.items():
        if given:
            raise UsageProblem(f"{name} goes with --web alone")
    if against is not None:
        others = {"--task": task, "--split": split, "--index": index, "--server": server, "--secret-file": secret_file}
        for name, value in others.items():
            if value is not None:
                raise UsageProblem(f"{name} does not go with --against: you are the opponent, and the game is here")
        from mcpgym_clients.against import AgainstOptions
        from mcpgym_clients.against import run as play_against

        play_against(AgainstOptions(environment, against, seat, seed, config or []))
        return
    if seat is not None:
        raise UsageProblem("--seat goes with --against alone; a task says who moves first")
    from mcpgym_clients.play import PlayOptions, run

    run(PlayOptions(environment, task, split, index, seed, config or [], server, secret_file))


@app.command()
def demo(
    games: Annotated[int, typer.Option(min=200, max=1000, help="Games per policy.")] = 400,
    out: Annotated[
        Path | None, typer.Option(help="Where traces go. Default: runs/demo-TIME.", show_default=False)
    ] = None,
) -> None:
    """Serve environments on loopback, play hundreds of games over MCP, compare with the exact values."""
    from mcpgym_clients.demo import run

    work_begins()

    run(games, out)


for commands in (
    bundling_commands,
    config_commands,
    connecting_commands,
    environment_commands,
    evaluation_commands,
    exporting_commands,
    viewing_commands,
    replay_commands,
    receipt_commands,
    inspection_commands,
    own_server_commands,
    training_commands,
):
    commands.register(app)


def _let_be_configured(commands: typer.Typer) -> None:
    """Have files and environment variables count for every command."""
    for info in commands.registered_commands:
        info.cls = ConfiguredCommand
    for group in commands.registered_groups:
        if group.name != "config" and group.typer_instance is not None:
            _let_be_configured(group.typer_instance)


_let_be_configured(app)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code. Mistakes of the user's end in one line, bugs of ours in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a console that cannot show a character must not stop the work
            stream.reconfigure(errors=plain.NAME)
    words = _arguments(arguments)
    command = typer.main.get_command(_with_options_of(_command_named(words)))
    try:
        return int(command.main(words, prog_name="mcpgym", standalone_mode=False) or 0)
    except typer.Abort:
        fail("the input ended before the command did")
        return FAILURE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if (usage := _usage(error)) is not None:
            fail(usage)
            return USAGE
        explained = explain(error)
        if explained is None:
            raise
        fail(explained[0])
        return explained[1]


def _command_named(words: Sequence[str]) -> str:
    """The first word that is no option of ``mcpgym`` itself."""
    left = iter(words)
    for word in left:
        if word == CONFIG_FILE:
            next(left, None)
        elif not word.startswith("-"):
            return word
    return ""


def _with_options_of(name: str) -> typer.Typer:
    """The command line in which no other command than ``name`` has its options: reading all of them takes a third of
    what ``mcpgym --help`` takes, which shows none."""
    lean = copy(app)
    lean.registered_commands = []
    for command in app.registered_commands:
        assert command.callback is not None
        known_as = command.name or command.callback.__name__
        if known_as != name:
            command = copy(command)
            command.name, command.help, command.callback = known_as, command.help or getdoc(command.callback), _no_work
        lean.registered_commands.append(command)
    return lean


def _no_work() -> None:
    """In place of a command that was not asked for."""


def _arguments(arguments: Sequence[str] | None) -> list[str]:
    return sys.argv[1:] if arguments is None else list(arguments)


def _usage(error: Exception) -> str | None:
    """The sentence of an error that typer's parser raised, with the command whose --help says more."""
    form: Any = getattr(error, "format_message", None)
    if form is None or not hasattr(error, "exit_code"):
        return None
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "mcpgym"
    message = str(form()).strip()
    if getattr(error, "option_name", None) == CONFIG_FILE:
        message = f"{CONFIG_FILE} goes before the command: mcpgym {CONFIG_FILE} FILE {where.removeprefix('mcpgym ')} …"
    return f"{message}{'' if message.endswith(('.', '?', ')')) else '.'} See: {where} --help"
