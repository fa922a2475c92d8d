"""Several processes that serve episodes behind one address: the front, and the life of its workers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.background import HttpServer, cancel, held
from mcpgym.control_plane.address import HAS_UNIX_SOCKETS
from mcpgym.control_plane.app import control_app
from mcpgym.control_plane.listeners import Listener, listen_tcp
from mcpgym.control_plane.secret import configured_secret, new_secret, take_secret
from mcpgym.episodes import WITH_PROCESS, WITH_SERVER, Episodes
from mcpgym.errors import ConfigurationError
from mcpgym.fleet.crew import Crew
from mcpgym.fleet.folders import folder_of_sockets
from mcpgym.fleet.front import Front
from mcpgym.fleet.metrics import FleetMetrics
from mcpgym.fleet.pool import LOOK_SECONDS
from mcpgym.fleet.relay import Relay
from mcpgym.fleet.workers import Orders, Worker
from mcpgym.names import checked_name
from mcpgym.serving import (
    Announced,
    allow_many_connections,
    announce_server,
    control_hosts,
    control_listener_for,
    own_names,
)
from mcpgym.stopping import ORDERLY_SECONDS, Stopping
from mcpgym.telemetry.settings import end
from mcpgym.wire import player_app

if TYPE_CHECKING:
    from mcpgym.receipts import Signer

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 25.0
"""How long running episodes may take to end after SIGTERM: less than the half minute that Kubernetes gives."""
PAUSES = (0.0, 1.0, 2.0, 5.0, 15.0, 30.0)
"""Seconds before a worker that died is replaced, the longer the more often it died young."""
YOUNG_SECONDS = 30.0
STUCK_LOOKS = 12
"""How often in a row a worker may leave unanswered how much it has to do, at five seconds each, before it is killed."""


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """How a worker is started: a program that calls :func:`~mcpgym.fleet.workers.read_orders`, and what it is told.

    ``what`` goes to every worker as it is (JSON).
    """

    command: Sequence[str]
    what: Mapping[str, Any]


@dataclass(frozen=True)
class FleetServing:
    """A running fleet, as :class:`~mcpgym.serving.Serving` is one server; ``crew`` is its control plane."""

    url: str
    control_url: str
    secret: str = field(repr=False)
    secret_is_new: bool
    bare: bool
    episodes: Episodes
    signer: Signer | None
    crew: Crew = field(repr=False)
    fleet: Fleet = field(repr=False)
    control_listener: Listener = field(repr=False)


class Fleet:
    """The life of ``count`` workers: started together, replaced when they die, and ended together."""

    def __init__(
        self, crew: Crew, count: int, command: WorkerCommand, url: str, cap: int, folder: Path, name: str = ""
    ) -> None:
        if count > cap:
            raise ConfigurationError(f"{count} workers cannot share a cap of {cap} episodes: raise it (--max-episodes)")
        self.crew, self.count, self._command = crew, count, command
        self._url, self._cap, self._folder = url, cap, folder
        self._prefix = f"{checked_name(name)}-w" if name else "w"
        self._names = 0
        self._lives: list[asyncio.Task[None]] = []
        self._now: dict[int, Worker] = {}
        self._stopping = False

    async def begin(self) -> None:
        """Start all; return when all answer.

        Raises:
            ConfigurationError: one did not come up.
        """
        starting = (self._filled(slot) for slot in range(self.count))
        started = await asyncio.gather(*starting, return_exceptions=True)
        for worker in started:
            if isinstance(worker, Worker):
                self._lives.append(asyncio.ensure_future(self._live(worker)))
        for worker in started:
            if isinstance(worker, BaseException):
                raise worker
        self._lives.append(asyncio.ensure_future(self._look_forever()))

    async def stop(self, number: int, seconds: float) -> None:
        """Tell all to stop and wait for their end, for so long; then kill those that are left."""
        self._stopping = self.crew.ending = True
        for worker in self._now.values():
            worker.tell(number)
        waiting = [asyncio.ensure_future(worker.process.wait()) for worker in self._now.values()]
        if waiting:
            _, left = await asyncio.wait(waiting, timeout=seconds)
            for task in left:
                task.cancel()
        await self.aclose()

    async def aclose(self) -> None:
        """End what is left."""
        self._stopping = self.crew.ending = True
        self.kill()
        for life in self._lives:
            await cancel(life)
        for worker in self._now.values():
            await worker.kill()

    def kill(self) -> None:
        """End every worker at once, from wherever this is called."""
        for worker in self._now.values():
            worker.tell(getattr(signal, "SIGKILL", signal.SIGTERM))

    async def _start(self, slot: int) -> Worker:
        self._names += 1
        name = f"{self._prefix}{self._names}"
        cap = self._cap // self.count + (slot < self._cap % self.count)
        player, control = (str(self._folder / f"w{self._names}.{kind}") for kind in ("player", "control"))
        orders = Orders(name, player, control, new_secret(), self._url, cap, self._command.what)
        return await Worker.start(self._command.command, slot, orders)

    async def _filled(self, slot: int) -> Worker | None:
        """The worker that has this place from now on; None when the fleet was told to stop meanwhile."""
        worker = await self._start(slot)
        if self._stopping:
            await worker.kill()
            return None
        self._now[slot] = worker
        self.crew.add(worker)
        return worker

    async def _live(self, worker: Worker) -> None:
        """See a place in the fleet filled: when its worker dies, say what was lost, and start another."""
        deaths = 0
        while True:
            began = time.monotonic()
            code = await worker.process.wait()
            lost = self.crew.remove(worker, WITH_SERVER if self._stopping else WITH_PROCESS)
            worker.settled()
            await worker.member.control.aclose()
            if self._stopping:
                return
            self.crew.deaths += 1
            self.crew.lost += lost
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            logger.error("worker %s died (%s); %d episodes are lost with it, and get no score", worker.name, how, lost)
            deaths = 0 if time.monotonic() - began > YOUNG_SECONDS else deaths + 1
            if (another := await self._again(worker.slot, deaths)) is None:
                return
            worker = another

    async def _again(self, slot: int, deaths: int) -> Worker | None:
        while not self._stopping:
            await asyncio.sleep(PAUSES[min(deaths, len(PAUSES) - 1)])
            try:
                return await self._filled(slot)
            except (ConfigurationError, OSError) as error:
                deaths += 1
                logger.error("no worker could be started: %s", error)
        return None

    async def _look_forever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.crew.look()
            for worker in self.crew.alive():
                if worker.member.missed >= STUCK_LOOKS and not self._stopping:
                    logger.error("worker %s has not answered for a minute: it is killed, and replaced", worker.name)
                    worker.tell(signal.SIGKILL)


@contextlib.asynccontextmanager
async def fleet_serving(
    graves: Episodes,
    command: WorkerCommand,
    workers: int,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    control_port: int | None = None,
    control_socket: str | Path | None = None,
    control_host: str | None = None,
    secret: str | None = None,
    allowed_hosts: Sequence[str] = (),
    public_url: str | None = None,
    bare: bool = True,
    signer: Signer | None = None,
    name: str = "",
) -> AsyncIterator[FleetServing]:
    """Serve by ``workers`` processes behind one players' port and one control plane; they answer when it yields.

    Args:
        graves: the environments that are served; no episode is ever opened in it, it remembers those that were lost.
        command: how a worker is started.
        workers: how many processes there are.
        host: as for :func:`mcpgym.serving.serving`, and so is all that follows.
        port: their port.
        control_port: the control plane's.
        control_socket: or its socket.
        control_host: or its host.
        secret: its secret.
        allowed_hosts: further names of this server.
        public_url: what players call it where that differs.
        bare: whether players may start episodes themselves.
        signer: what is announced as signing scores; the workers sign.
        name: this fleet's among others: its workers' names begin with it.

    Raises:
        ConfigurationError: an address is taken or cannot be, or a worker does not come up.
    """
    if not HAS_UNIX_SOCKETS:
        raise ConfigurationError("several workers need unix sockets, and there are none here: serve with one")
    found = configured_secret(secret)
    token = found if found is not None else new_secret()
    async with contextlib.AsyncExitStack() as stack:
        player = listen_tcp(host, port, "--port")
        stack.callback(player.close)
        control_listener = control_listener_for(player, control_host, control_port, control_socket)
        stack.callback(control_listener.close)
        folder = stack.enter_context(folder_of_sockets())
        crew = Crew(graves)
        stack.push_async_callback(graves.aclose)
        url = (public_url or player.url).rstrip("/")
        fleet = Fleet(crew, workers, command, url, graves.limits.live, folder, name)
        stack.push_async_callback(fleet.aclose)
        await fleet.begin()
        grave_app = player_app(graves, allowed_hosts=[*allowed_hosts, *own_names(host)], bare=False)
        await stack.enter_async_context(held(grave_app.running))
        behind = control_app(crew, FleetMetrics(crew), token, hosts=control_hosts(control_listener, control_host))
        front = Front(crew, grave_app, bare=bare)
        servers = [HttpServer(front, player.socket, Relay), HttpServer(behind, control_listener.socket)]
        for server in servers:
            stack.push_async_callback(server.end)
            await server.begin()
        stack.callback(control_listener.remove_file)
        yield FleetServing(
            url, control_listener.url, token, found is None, bare, graves, signer, crew, fleet, control_listener
        )


def run_fleet(
    graves: Episodes,
    command: WorkerCommand,
    workers: int,
    *,
    drain_seconds: float = DRAIN_SECONDS,
    announce: Callable[[Announced], None] | None = None,
    secret_file: str | Path | None = None,
    **options: Any,
) -> int:
    """Serve by several processes until SIGINT or SIGTERM, as a program's whole work, and return its exit code.

    After SIGTERM no episode begins, and those that run may come to their end for ``drain_seconds``; SIGINT ends them
    within seconds, and a second signal at once. No worker outlives this process, however it ends.

    Args:
        graves: as for :func:`fleet_serving`.
        command: how a worker is started; its ``what`` must tell it how long it may drain.
        workers: how many.
        drain_seconds: how long running episodes may take to end.
        announce: says where to connect, in place of :func:`~mcpgym.serving.announce_server`.
        secret_file: a file that holds the control plane's secret.
        **options: as for :func:`fleet_serving`.

    Returns:
        0 after SIGTERM, 130 after SIGINT.

    Raises:
        ConfigurationError: as for :func:`fleet_serving`.
    """
    allow_many_connections()
    options["secret"] = take_secret(options.get("secret"), secret_file)

    async def serve(stopping: Stopping) -> None:
        async with fleet_serving(graves, command, workers, **options) as server:
            stopping.last_rites += [server.fleet.kill, server.control_listener.remove_file, lambda: end(1.0)]
            (announce or announce_server)(server)
            await stopping.wait()
            number = signal.SIGTERM if stopping.is_patient else signal.SIGINT
            await server.fleet.stop(number, ORDERLY_SECONDS - 3.0 + (drain_seconds if stopping.is_patient else 0.0))

    return Stopping(drain_seconds).run(serve)
