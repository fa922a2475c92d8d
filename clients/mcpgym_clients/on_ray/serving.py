"""``mcpgym serve --ray``: servers on the nodes of a cluster until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from dataclasses import replace

from mcpgym.control_plane.secret import VARIABLE, configured_secret, new_secret
from mcpgym.errors import McpgymError
from mcpgym.registry import environment_class
from mcpgym.stopping import Stopping
from mcpgym_clients.on_ray.cluster import connected
from mcpgym_clients.on_ray.server_actor import Described
from mcpgym_clients.on_ray.servers import Servers
from mcpgym_clients.serve import ServeOptions

logger = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
DRAIN_SECONDS = 25.0


def serve_on_ray(options: ServeOptions) -> int:
    """Serve on a cluster; the exit code.

    Raises:
        UsageProblem: Ray is not installed.
        ConfigurationError: an environment or a cluster is not there, it has no room, or a server does not start.
    """
    given = configured_secret(file=options.secret_file)
    secret = given or new_secret()
    drain = DRAIN_SECONDS if options.drain_seconds is None else options.drain_seconds
    told = replace(options, secret_file=None)
    for name in options.environments:  # what is not there is said before a cluster is asked
        environment_class(name)
    with connected(options.ray_address) as ray:
        servers = Servers(ray, options.workers, options.cpus_per_server, told, secret)

        async def serve(stopping: Stopping) -> None:
            stopping.last_rites.append(servers.kill)
            try:
                _announce(await servers.begin(), None if given else secret)
                await _watch(servers, stopping)
            finally:
                await servers.stop(drain if stopping.is_patient else 0.0)

        return Stopping(drain).run(serve)


async def _watch(servers: Servers, stopping: Stopping) -> None:
    """Say what changes, until told to stop."""
    known: dict[int, Described | None] = {}
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await stopping.wait()
            return
        try:
            found = await servers.look()
        except McpgymError as error:
            logger.error("%s", error)
            continue
        for place, now in enumerate(found):
            before = known.get(place)
            if now is None and before is not None:
                logger.error("server ray-%d does not answer; Ray starts it again", place)
            elif now is not None and place in known and (before is None or before.control_url != now.control_url):
                logger.warning("server ray-%d is at %s now, its control plane at %s", place, now.url, now.control_url)
            known[place] = now


def _announce(found: list[Described], new: str | None) -> None:
    nodes = len({one.node for one in found})
    lines = [f"{len(found)} servers on {nodes} nodes:"]
    lines += [f"  {one.name}  players {one.url}  control plane {one.control_url}" for one in found]
    lines += ["Evaluate on all of them, from any node: mcpgym eval ENV --policy POLICY --server ray"]
    if new is not None:
        lines += ["Their secret, shown this once (from elsewhere it is needed):", f"  export {VARIABLE}={new}"]
    with contextlib.suppress(OSError, ValueError):
        print(*lines, "Stop with Ctrl-C.", sep="\n", file=sys.stderr, flush=True)
