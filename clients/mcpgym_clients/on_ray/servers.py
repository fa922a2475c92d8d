"""The servers of a cluster: started with their places, watched, and found again by name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from mcpgym.control_plane.address import ControlAddress
from mcpgym.errors import ConfigurationError, ServerUnavailable
from mcpgym_clients.on_ray.cluster import NAMESPACE, connected
from mcpgym_clients.on_ray.server_actor import PREFIX, Described, ServerActor
from mcpgym_clients.serve import ServeOptions

PLACE_SECONDS = 60.0
"""How long the cluster may take to have room for all servers."""
START_SECONDS = 120.0
ASK_SECONDS = 10.0
"""How long a server may take to say how it is."""
MISSES = 3
"""How often in a row a server may fail to say it, while it lives, before it is started again."""


class Servers:
    """``count`` servers on as many nodes as there are, with ``cpus`` of each node's for each; see :meth:`begin`."""

    def __init__(self, ray: Any, count: int, cpus: float, options: ServeOptions, secret: str) -> None:
        self._ray = ray
        self._count, self._cpus, self._options, self._secret = count, cpus, options, secret
        self._group: Any = None
        self._actors: list[Any] = []
        self._misses = [0] * count

    async def begin(self) -> list[Described]:
        """Place and start them; where they are.

        Raises:
            ConfigurationError: the cluster has no room for them, or one does not come up.
        """
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        bundles = [{"CPU": self._cpus} for _ in range(self._count)]
        self._group = placement_group(bundles, strategy="SPREAD")
        if not await asyncio.to_thread(self._group.wait, PLACE_SECONDS):
            free = self._ray.available_resources().get("CPU", 0)
            raise ConfigurationError(
                f"the Ray cluster has no room for {self._count} servers with {self._cpus:g} CPUs each: it has {free:g} "
                "free. Take fewer (--workers), or less for each (--cpus-per-server)"
            )
        actor = self._ray.remote(ServerActor)
        for place in range(self._count):
            strategy = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=place)
            made = actor.options(
                name=f"{PREFIX}{place}",
                namespace=NAMESPACE,
                num_cpus=self._cpus,
                max_restarts=-1,
                max_concurrency=1000,
                scheduling_strategy=strategy,
            )
            self._actors.append(made.remote(place, self._options, self._secret))
        found = await asyncio.gather(*(_described(one, START_SECONDS) for one in self._actors), return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException):
                raise ConfigurationError(f"a server did not start: {_reason(one)}") from one
        return [one for one in found if isinstance(one, Described)]

    async def look(self) -> list[Described | None]:
        """How each is; None for one that does not say. One that lives and stays silent is started again."""
        found = await asyncio.gather(*(_described(one, ASK_SECONDS) for one in self._actors), return_exceptions=True)
        for place, one in enumerate(found):
            self._misses[place] = self._misses[place] + 1 if isinstance(one, TimeoutError) else 0
            if self._misses[place] >= MISSES:
                self._misses[place] = 0
                self._ray.kill(self._actors[place], no_restart=False)
        return [one if isinstance(one, Described) else None for one in found]

    async def stop(self, seconds: float) -> None:
        """Let the episodes that run end, for so long, and end the servers."""
        drained = [asyncio.ensure_future(_answer(one.drain.remote(seconds))) for one in self._actors]
        if drained:
            await asyncio.wait(drained, timeout=seconds + ASK_SECONDS)
        for task in drained:
            task.cancel()
        self.kill()

    def kill(self) -> None:
        """End them now, and give their places back."""
        from ray.util.placement_group import remove_placement_group

        for one in self._actors:
            self._ray.kill(one)
        if self._group is not None:
            remove_placement_group(self._group)
        self._actors, self._group = [], None


async def find_servers(address: str | None = None) -> Sequence[ControlAddress]:
    """The control planes of the servers that ``mcpgym serve --ray`` runs on the cluster.

    Raises:
        UsageProblem, ConfigurationError: there is no Ray, or no cluster.
        ServerUnavailable: no server runs there.
    """
    with connected(address) as ray:
        names = [
            one["name"] for one in ray.util.list_named_actors(all_namespaces=True) if one["namespace"] == NAMESPACE
        ]
        ours = sorted(name for name in names if name.startswith(PREFIX))
        deadline = time.monotonic() + ASK_SECONDS
        actors = [ray.get_actor(name, namespace=NAMESPACE) for name in ours]
        asked = (_described(one, max(deadline - time.monotonic(), 1.0)) for one in actors)
        found = await asyncio.gather(*asked, return_exceptions=True)
    there = [ControlAddress(one.control_url, one.secret) for one in found if isinstance(one, Described)]
    if not there:
        raise ServerUnavailable("no server runs on this Ray cluster: start some with mcpgym serve --ray")
    return there


async def _described(actor: Any, seconds: float) -> Described:
    return Described(**await asyncio.wait_for(_answer(actor.describe.remote()), seconds))


async def _answer(reference: Any) -> Any:
    """What a call of an actor answers, awaited as any coroutine is."""
    return await reference


def _reason(error: BaseException) -> str:
    cause = getattr(error, "cause", None) or error
    return f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__
