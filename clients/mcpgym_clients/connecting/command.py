"""``mcpgym connect``: what a person's MCP client needs to have an environment, shown or put into its own file."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from rich.syntax import Syntax

from mcpgym.server_names import server_name
from mcpgym_clients.connecting.known_clients import CLIENTS, KnownClient, Machine, Server, known_client
from mcpgym_clients.connecting.merging import Merged, merge, snippet
from mcpgym_clients.console import escaped, out
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.options import parse_config


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """What was typed."""

    client: str
    environments: Sequence[str]
    url: str | None
    name: str | None
    config: Sequence[str]
    task: str | None
    split: str | None
    index: int | None
    seed: int | None
    write: bool
    project: bool
    file: Path | None


def run(options: ConnectOptions) -> None:
    """Show what belongs into the client's file, or put it there."""
    client = known_client(options.client)
    if client is None:
        names = ", ".join(known.name for known in CLIENTS)
        raise UsageProblem(f"no client {options.client!r} is known; there is: {names} (json for any other)")
    server = server_of(options, Path.cwd())
    if server.url and client.url_key is None:
        raise UsageProblem(
            f"{client.title} starts servers by commands only: leave --url out, or add the URL in its settings under "
            "Connectors"
        )
    entry = client.entry(server)
    name = options.name or server_name("-".join(options.environments))
    path = _file(client, options)
    if not options.write:
        _show(client, path, snippet(client, name, entry))
    else:
        _say(merge(client, path, name, entry), name)
    _say_what_next(client, options)


def server_of(options: ConnectOptions, here: Path) -> Server:
    """The server to connect: a command that is right from any folder, or a URL.

    Raises:
        UsageProblem: the options contradict each other.
        UnknownNameError: there is no such environment.
        ConfigurationError: a configuration does not fit it.
    """
    bound = {"--task": options.task, "--split": options.split, "--index": options.index, "--seed": options.seed}
    given = [name for name, value in bound.items() if value is not None]
    if options.url is not None:
        if given or options.config or options.environments:
            odd = (given or (["--config"] if options.config else [options.environments[0]]))[0]
            raise UsageProblem(f"{odd} belongs to a command; what runs at --url is configured there")
        if urlsplit(options.url).scheme not in ("http", "https") or not urlsplit(options.url).hostname:
            raise UsageProblem(f"{options.url!r} is no URL of a server; one looks like http://127.0.0.1:8000/mcp")
        return Server(url=options.url)
    if len(options.environments) > 1 and given:
        raise UsageProblem(f"{given[0]} belongs to one environment, and several are named")
    if not options.environments:
        raise UsageProblem("name an environment, or a running server with --url; mcpgym list shows what there is")
    _load(options)
    from mcpgym.combined.naming import is_file

    named = [str(here / name) if is_file(name) else name for name in options.environments]
    words = ["serve", *named, "--stdio"]
    for name, value in bound.items():
        words += [name, str(value)] if value is not None else []
    for pair in options.config:
        words += ["--config", pair]
    needs_folder = any(":" in name or is_file(name) for name in options.environments)
    command, *first = _program()
    return Server(command, (*first, *words), {"PYTHONPATH": str(here)} if needs_folder else {})


def _load(options: ConnectOptions) -> None:
    """Whether there are such environments and configurations: a client would only say that the server ended."""
    from mcpgym.registry import load_environment

    config = parse_config(options.config, options.environments)
    for name in options.environments:
        environment = load_environment(name, config[name])
        if options.task is not None:
            environment.task(options.task)
        elif options.split is not None:
            environment.task_at(options.split, options.index or 0)


def _program() -> list[str]:
    """This mcpgym by absolute paths: a desktop program has another PATH and works in another folder."""
    script = Path(sys.executable).with_name("mcpgym.exe" if sys.platform == "win32" else "mcpgym")
    return [str(script)] if script.exists() else [sys.executable, "-m", "mcpgym_clients"]


def this_machine() -> Machine:
    """The machine that this runs on."""
    return Machine(sys.platform, Path.home(), os.environ, lambda parent, pattern: sorted(Path(parent).glob(pattern)))


def _file(client: KnownClient, options: ConnectOptions) -> Path:
    if options.file is not None:
        return options.file.expanduser()
    if options.project:
        if not client.project:
            raise UsageProblem(f"{client.title} has no configuration of a project; leave --project out")
        return Path.cwd() / client.project
    if client.name == "json" and options.write:
        raise UsageProblem("which file is it? Say so with --file")
    return Path(client.file(this_machine()))


def _show(client: KnownClient, path: Path, text: str) -> None:
    if client.name == "json":
        out().print("For a client that reads JSON:")
    else:
        out().print(
            f"[bold]{escaped(client.title)}[/bold] keeps its servers in [cyan]{escaped(path)}[/cyan].", soft_wrap=True
        )
        out().print("Put this there, or run the same command with [bold]--write[/bold]:")
    out().print()
    if out().is_terminal:
        out().print(Syntax(text, client.format, background_color="default", word_wrap=True))
    else:
        out().print(text, markup=False, highlight=False, soft_wrap=True)
    out().print()


def _say(merged: Merged, name: str) -> None:
    where = f"[cyan]{escaped(merged.path)}[/cyan]"
    if merged.what == "unchanged":
        out().print(f"{where} has {escaped(name)} already, just so; nothing was changed.", soft_wrap=True)
        return
    did = "Added" if merged.what == "added" else "Replaced"
    out().print(f"{did} {escaped(name)} in {where}.", soft_wrap=True)
    if merged.backup is not None:
        out().print(f"What it was before is in {escaped(merged.backup)}.", soft_wrap=True)


def _say_what_next(client: KnownClient, options: ConnectOptions) -> None:
    out().print(f"Then: {escaped(client.afterwards)}", soft_wrap=True)
    if not options.environments:
        return
    say = "Use the tools to do the task, until it is over."
    if options.task is None and options.split is None:
        from mcpgym.registry import environment_class

        say = f"Start an episode of {environment_class(options.environments[0]).name} and play it to the end."
    out().print(f"Say to it first: [green]{escaped(say)}[/green]", soft_wrap=True)
