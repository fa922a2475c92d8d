"""``mcpgym serve``: environments over MCP, by HTTP or stdio, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.control_plane.address import LOOPBACK
from mcpgym.control_plane.secret import forget_secret, take_secret
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes, Limits
from mcpgym.errors import MissingPackage
from mcpgym.registry import environment_class, environment_names, load_environment
from mcpgym.stopping import Stopping
from mcpgym.telemetry.settings import telemetry
from mcpgym_clients.console import talk, warn
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.options import parse_config
from mcpgym_clients.signing import own_signer

if TYPE_CHECKING:
    from mcpgym.serving import Announced
    from mcpgym.wire.stdio import Wire

MANY_TOOLS = 64
"""Tools of an environment that is served without being named."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What was typed. No environments means all that are installed."""

    environments: Sequence[str]
    host: str
    port: int | None
    allowed_hosts: Sequence[str]
    control_port: int | None
    control_socket: Path | None
    secret_file: Path | None
    signing_key: Path | None
    stdio: bool
    task: str | None
    split: str | None
    index: int | None
    seed: int | None
    config: Sequence[str]
    max_episodes: int
    idle_seconds: float | None
    episode_urls_only: bool
    fast_lane: bool
    json_log: bool = False
    workers: int = 1
    name: str = ""
    drain_seconds: float | None = None
    control_host: str | None = None
    public_url: str | None = None
    ray: bool = False
    ray_address: str | None = None
    cpus_per_server: float = 1.0


def run(options: ServeOptions) -> int:
    """Serve until stopped; the exit code.

    Raises:
        UsageProblem, ConfigurationError: options contradict each other, or something named is not there.
    """
    _refuse_contradictions(options)
    begin_logging(options)
    with telemetry("mcpgym-serve"):
        return _run(options)


def begin_logging(options: ServeOptions) -> None:
    """Write this process's log in the form that was asked for."""
    if options.json_log:
        from mcpgym.json_lines import log_as_json

        log_as_json()
    else:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)


def _run(options: ServeOptions) -> int:
    if options.stdio:
        from mcpgym.wire.stdio import Wire

        forget_secret()  # nothing here asks for it
        if sys.stdin is not None and sys.stdin.isatty() and not options.json_log:
            talk().print("This speaks MCP on standard input and output, to a client that starts it. Ctrl-C stops it.")
        wire = Wire()  # before any environment is imported: whatever it prints then is no protocol
        return Stopping().run(lambda stopping: _serve_stdio(options, load(options), wire, stopping))
    if options.ray:
        from mcpgym_clients.on_ray.serving import serve_on_ray

        _warn_of_others(options)
        return serve_on_ray(options)
    secret = take_secret(file=options.secret_file)  # before any environment is imported
    signer = own_signer(options.signing_key)
    episodes = load(options)
    _warn_of_others(options)
    shared: dict[str, Any] = {
        "host": options.host,
        "port": 8000 if options.port is None else options.port,
        "control_port": options.control_port,
        "control_socket": options.control_socket,
        "control_host": options.control_host,
        "secret": secret,
        "bare": not options.episode_urls_only,
        "allowed_hosts": options.allowed_hosts,
        "public_url": options.public_url,
        "signer": signer,
        "announce": _announce_as_json if options.json_log else None,
    }
    if options.workers > 1:
        from mcpgym_clients.serve_workers import serve_by_workers

        return serve_by_workers(options, episodes, shared)
    from mcpgym.serving import run_server

    return run_server(episodes, fast_lane=options.fast_lane, drain_seconds=options.drain_seconds or 0.0, **shared)


def _warn_of_others(options: ServeOptions) -> None:
    """Say what other machines may do once this listens beyond loopback."""
    if options.host not in LOOPBACK:
        _warn(
            options,
            f"--host {options.host} lets other machines play here; players need no password, only the address."
            + ("" if options.control_host else " The control plane stays on this machine."),
        )
    if options.control_host is not None and options.control_host not in LOOPBACK:
        _warn(options, f"--control-host {options.control_host}: who has the secret can open and score episodes there")


def _announce_as_json(server: Announced) -> None:
    about = {"url": server.url, "control": server.control_url, "environments": list(server.episodes.environments)}
    if server.secret_is_new:  # which is for one person's eyes, and no log's
        about["hint"] = "its secret was made for this run and is not shown: set MCPGYM_CONTROL_SECRET, or --secret-file"
    logging.getLogger("mcpgym.events").info("serving", extra={"event": about})


def _warn(options: ServeOptions, sentence: str) -> None:
    """A warning of ours, with nothing of an episode in it, in the form that the log has."""
    if options.json_log:
        logging.getLogger("mcpgym.events").warning("warning", extra={"event": {"message": sentence}})
    else:
        warn(sentence)


def load(options: ServeOptions) -> Episodes:
    """The environments that were asked for, each under its configuration.

    An installed environment that is broken stops the server only when it was asked for by name. One whose package is
    missing, or that has more tools than a model could choose among, is served only then.

    Raises:
        UsageProblem: one is named twice, or there is none.
        ConfigurationError: one that was asked for is not there, cannot be loaded, or its configuration does not fit.
    """
    wanted = {}
    for name in options.environments or environment_names():
        try:
            cls = environment_class(name)
        except Exception as error:
            if options.environments:
                raise
            _warn(options, f"not served: {error}")
            continue
        if cls.name in wanted:
            raise UsageProblem(f"{cls.name} is named twice")
        wanted[cls.name] = name
    if not wanted:
        raise UsageProblem("no environment is installed, so there is nothing to serve")
    config = parse_config(options.config, list(wanted))
    loaded = {}
    for name, spelt in wanted.items():
        try:
            loaded[name] = load_environment(spelt, config[name])
        except Exception as error:
            if options.environments or config[name]:
                raise
            if not isinstance(error, MissingPackage):  # mcpgym list says what else there could be
                _warn(options, f"not served: {name}: {error}")
            continue
        if not options.environments and len(loaded[name].tools) > MANY_TOOLS:
            del loaded[name]
    if options.environments:
        _start_processes(loaded.values())
    limits = Limits(live=options.max_episodes)
    if options.idle_seconds is not None:
        limits = replace(limits, idle_seconds=options.idle_seconds)
    elif options.stdio and (options.task is not None or options.split is not None):
        limits = replace(limits, idle_seconds=math.inf)  # its client ends it, who may come back tomorrow
    return Episodes(loaded, limits, options.name)


def _start_processes(loaded: Iterable[Environment[Any, Any, Any]]) -> None:
    """Start those that play in processes of their own (``mcpgym env add``): what is wrong with one is said at once."""
    for environment in loaded:
        for member in (environment, *getattr(environment, "members", {}).values()):
            if hasattr(member, "begin_process"):
                member.begin_process()


def _refuse_contradictions(options: ServeOptions) -> None:
    given = {
        "--task": options.task,
        "--split": options.split,
        "--index": options.index,
        "--seed": options.seed,
    }
    bound = [name for name, value in given.items() if value is not None]
    if bound and not options.stdio:
        raise UsageProblem(
            f"{bound[0]} makes a stdio process one episode: add --stdio. Over HTTP, players start episodes themselves"
        )
    http = {
        "--port": options.port,
        "--control-port": options.control_port,
        "--control-socket": options.control_socket,
        "--secret-file": options.secret_file,
        "--signing-key": options.signing_key,
        "--allowed-host": options.allowed_hosts or None,
        "--episode-urls-only": options.episode_urls_only or None,
        "--workers": None if options.workers == 1 else options.workers,
        "--name": options.name or None,
        "--drain-seconds": options.drain_seconds,
        "--control-host": options.control_host,
        "--public-url": options.public_url,
        "--ray": options.ray or None,
    }
    if options.stdio and (odd := [name for name, value in http.items() if value is not None]):
        raise UsageProblem(f"{odd[0]} belongs to HTTP, and --stdio listens nowhere: drop one of the two")
    if not options.ray and (options.ray_address is not None or options.cpus_per_server != 1.0):
        raise UsageProblem("--ray-address and --cpus-per-server go with --ray")
    alone = {"--control-socket": options.control_socket, "--public-url": options.public_url, "--name": options.name}
    if options.ray and (odd := [name for name, value in alone.items() if value]):
        raise UsageProblem(f"{odd[0]} is of one server; those on Ray have names and addresses of their own")
    if options.public_url is not None and not options.public_url.startswith(("http://", "https://")):
        raise UsageProblem(
            f"--public-url {options.public_url}: what players call this server, with http:// or https://"
        )
    if options.task is not None and (options.split is not None or options.index is not None):
        raise UsageProblem("name a task by --task, or by --split and --index; not by both")
    if bound and options.task is None and options.split is None:
        raise UsageProblem(f"{bound[0]} needs a task: --task, or --split and --index")
    if bound and len(options.environments) != 1:
        raise UsageProblem("a process that is one episode serves one environment: name it")


async def _serve_stdio(options: ServeOptions, episodes: Episodes, wire: Wire, stopping: Stopping) -> None:
    from mcpgym.wire.stdio import serve_stdio

    bound = None
    if options.task is not None or options.split is not None:
        (name,) = episodes.environments
        bound = await episodes.open(
            name, task=options.task, split=options.split, index=options.index, seed=options.seed or 0
        )
    expiring = asyncio.ensure_future(episodes.expire_forever())
    served = asyncio.ensure_future(serve_stdio(episodes, bound, wire=wire))
    asked = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait({served, asked}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (expiring, served, asked):
            task.cancel()
        await asyncio.wait({expiring, served, asked})
        await episodes.aclose()
    if not served.cancelled():
        served.result()
