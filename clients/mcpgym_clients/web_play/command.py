"""``mcpgym play --web``: the page, served until Ctrl-C."""

from __future__ import annotations

import contextlib
import secrets
import webbrowser
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpgym.background import HttpServer
from mcpgym.control_plane.listeners import listen_tcp
from mcpgym.episodes import Limits
from mcpgym.registry import load_environment
from mcpgym.stopping import Stopping
from mcpgym_clients.connection import own_server
from mcpgym_clients.console import escaped, out, talk
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.options import parse_config
from mcpgym_clients.play import PlayOptions
from mcpgym_clients.web_play.game import MAX_GAMES, Games
from mcpgym_clients.web_play.site import play_app
from mcpgym_clients.web_play.tables import Mode, Table
from mcpgym_rl.lanes import McpLane
from mcpgym_rl.policies import make_policy

IDLE_SECONDS = 7 * 24 * 3600.0
"""A game waits so long for the person; the number of games is bounded otherwise."""


@dataclass(frozen=True, slots=True)
class WebOptions:
    """What was typed: ``against`` names the policy whose opponent the person is, ``watch`` one or two to look at."""

    play: PlayOptions
    against: str | None
    watch: Sequence[str]
    seat: str | None
    port: int
    open_page: bool


@dataclass(frozen=True, slots=True)
class Served:
    """A page that is served: ``url`` is its address, ``entrance`` one that leads there a single time."""

    environment: str
    url: str
    entrance: str


def run(options: WebOptions) -> int:
    """Serve the page; the exit code.

    Raises:
        UsageProblem: options contradict.
        ConfigurationError: there is no such environment, policy or seat; the port is taken.
    """

    async def serve(stopping: Stopping) -> None:
        async with served(options) as page:
            out().print(f"{escaped(page.environment)} at {page.url}", soft_wrap=True)
            talk().print("[dim]Only this machine can open it, and only by this address. Ctrl-C stops it.[/dim]")
            if options.open_page:
                webbrowser.open(page.entrance)
            await stopping.wait()

    _mode(options)
    return Stopping().run(serve)


@contextlib.asynccontextmanager
async def served(options: WebOptions) -> AsyncIterator[Served]:
    """The page, while the context is open.

    Raises:
        UsageProblem, ConfigurationError: as :func:`run`.
    """
    mode = _mode(options)
    config: Mapping[str, Any] = parse_config(options.play.config, [options.play.environment])[options.play.environment]
    environment = load_environment(options.play.environment, config)
    specs = [options.against] if options.against is not None else list(options.watch)
    token, frame, once = (secrets.token_urlsafe(16) for _ in range(3))
    async with contextlib.AsyncExitStack() as stack:
        policies = [make_policy(spec, environment) for spec in specs]
        for policy in policies:
            stack.push_async_callback(policy.aclose)
        limits = Limits(idle_seconds=IDLE_SECONDS, live=MAX_GAMES + 8)
        control = await stack.enter_async_context(own_server(environment, limits=limits))
        lane = McpLane(control)
        stack.push_async_callback(lane.aclose)
        table = Table(options.play, mode, environment, control, lane, policies, specs, options.seat)
        table.check()
        games = Games(table.new)
        stack.push_async_callback(games.aclose)
        listener = listen_tcp("127.0.0.1", options.port, "--port")
        server = HttpServer(play_app(table, games, token, frame, once), listener.socket)
        await server.begin()
        stack.push_async_callback(server.end)
        stack.callback(games.stop)
        yield Served(environment.name, f"{listener.url}/{token}/", f"{listener.url}/{once}/")


def _mode(options: WebOptions) -> Mode:
    play = options.play
    if play.server is not None or play.secret_file is not None:
        raise UsageProblem("--server does not go with --web: the page serves the environment itself")
    if options.against is not None and options.watch:
        raise UsageProblem("--against and --watch contradict: take a part, or watch")
    if len(options.watch) > 2:
        raise UsageProblem("--watch names one policy, or two that play each other")
    on_the_tree = options.against is not None or len(options.watch) == 2
    if on_the_tree:
        for name, value in {"--task": play.task, "--split": play.split, "--index": play.index}.items():
            if value is not None:
                raise UsageProblem(f"{name} does not go with a game between two: a task says who the opponent is")
    elif options.seat is not None:
        raise UsageProblem("--seat goes with --against, or with two policies to watch; a task says who moves first")
    if options.against is not None:
        return "against"
    return "match" if len(options.watch) == 2 else "watch" if options.watch else "own"
