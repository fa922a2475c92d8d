"""The command ``mcpgym``: what may be typed.

The commands are in the modules that are registered here, in the order of ``--help``; each one's work is a module of its
own, imported when it is run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
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
    installed_commands,
    own_server_commands,
    plain,
    playing_commands,
    receipt_commands,
    replay_commands,
    serving_commands,
    training_commands,
    viewing_commands,
)
from mcpgym_clients.configuring.command import ConfiguredCommand
from mcpgym_clients.failures import FAILURE, INTERRUPTED, USAGE, explain, fail

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


for commands in (
    installed_commands,
    serving_commands,
    playing_commands,
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
