"""A server as a Ray actor: it serves from its own event loop, and Ray starts it again where it died."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict, dataclass, replace
from typing import Any

from mcpgym.control_plane.secret import forget_secret
from mcpgym.serving import Serving, drain, serving
from mcpgym_clients.serve import ServeOptions, load
from mcpgym_clients.signing import own_signer

NODE = "node"
"""As a host: the address by which the other nodes of the cluster know the one that a server is on."""
PREFIX = "mcpgym-server-"


@dataclass(frozen=True, slots=True)
class Described:
    """Where a server is, and how much it has to do. ``secret`` is for whoever is on the same cluster."""

    name: str
    node: str
    pid: int
    url: str
    control_url: str
    secret: str
    live: int
    cap: int
    draining: bool


class ServerActor:
    """One server; every method first makes sure that it is up, for Ray starts an actor again without a word.

    Args:
        place: which of the servers it is.
        options: what to serve, and how.
        secret: of its control plane.
    """

    def __init__(self, place: int, options: ServeOptions, secret: str) -> None:
        forget_secret()  # what the node was started with: no tool is to inherit it
        self._place, self._options, self._secret = place, options, secret
        self._stack = contextlib.AsyncExitStack()
        self._server: Serving | None = None
        self._lock = asyncio.Lock()

    async def describe(self) -> dict[str, Any]:
        """What a client must know, as :class:`Described` has it."""
        import os

        import ray

        server = await self._up()
        found = await server.control.load()
        context = ray.get_runtime_context()
        return asdict(
            Described(
                self._name,
                context.get_node_id(),
                os.getpid(),
                server.url,
                server.control_url,
                self._secret,
                found.live,
                found.cap,
                found.draining,
            )
        )

    async def drain(self, seconds: float) -> None:
        """Let no episode begin, wait for those that run, and stop serving."""
        async with self._lock:
            if self._server is not None:
                await drain(self._server.episodes, seconds)
            await self._stack.aclose()
            self._server = None

    @property
    def _name(self) -> str:
        return f"ray-{self._place}"

    async def _up(self) -> Serving:
        async with self._lock:
            if self._server is None:
                options = replace(self._options, name=self._name)
                made = serving(
                    load(options),
                    host=_host(options.host),
                    port=options.port or 0,
                    control_host=_host(options.control_host or "127.0.0.1"),
                    control_port=options.control_port or 0,
                    secret=self._secret,
                    fast_lane=options.fast_lane,
                    bare=not options.episode_urls_only,
                    allowed_hosts=options.allowed_hosts,
                    signer=own_signer(options.signing_key),
                )
                self._server = await self._stack.enter_async_context(made)
            return self._server


def _host(host: str) -> str:
    if host != NODE:
        return host
    from ray.util import get_node_ip_address

    address: str = get_node_ip_address()
    return address
