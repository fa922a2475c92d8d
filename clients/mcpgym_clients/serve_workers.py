"""``mcpgym serve --workers N``: the same server as several processes; run as a module, one of those processes."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from mcpgym.episodes import Episodes
from mcpgym_clients.failures import FAILURE, explain, fail
from mcpgym_clients.serve import ServeOptions, begin_logging, load
from mcpgym_clients.signing import own_signer

_OPTIONS = TypeAdapter(ServeOptions)


def serve_by_workers(options: ServeOptions, environments: Episodes, shared: dict[str, Any]) -> int:
    """Serve by as many processes as the options say; the exit code.

    Args:
        options: what was typed.
        environments: loaded here as well: what is wrong with them is said once, and lost episodes are answered for.
        shared: what :func:`mcpgym.fleet.serving.run_fleet` is told.

    Raises:
        ConfigurationError: an address is taken, or a worker does not come up.
    """
    from mcpgym.fleet.serving import DRAIN_SECONDS, WorkerCommand, run_fleet

    drain = DRAIN_SECONDS if options.drain_seconds is None else options.drain_seconds
    told = replace(options, environments=options.environments or list(environments.environments), drain_seconds=drain)
    command = WorkerCommand(
        [sys.executable, "-m", "mcpgym_clients.serve_workers"], {"options": _OPTIONS.dump_python(told, mode="json")}
    )
    return run_fleet(environments, command, options.workers, drain_seconds=drain, name=options.name, **shared)


def work() -> int:
    """Be one worker: serve on the sockets that the front names, until it says so or is gone; the exit code."""
    from mcpgym.fleet.workers import read_orders
    from mcpgym.serving import own_names, run_server
    from mcpgym.telemetry.settings import telemetry

    orders = read_orders()
    options = _OPTIONS.validate_python(orders.what["options"])
    begin_logging(options)
    with telemetry("mcpgym-serve", instance=orders.name):
        return run_server(
            load(replace(options, max_episodes=orders.cap, name=orders.name)),
            player_socket=orders.player_socket,
            control_socket=orders.control_socket,
            secret=orders.secret,
            fast_lane=options.fast_lane,
            bare=not options.episode_urls_only,
            allowed_hosts=[*options.allowed_hosts, *own_names(options.host)],
            public_url=orders.public_url,
            signer=own_signer(options.signing_key),
            announce=lambda server: None,
            drain_seconds=options.drain_seconds,
        )


def main() -> int:
    """:func:`work`; what is wrong is said in a line, as the command line says it."""
    try:
        return work()
    except Exception as error:
        if (explained := explain(error)) is None:
            raise
        fail(explained[0])
        return explained[1] or FAILURE


if __name__ == "__main__":
    sys.exit(main())
