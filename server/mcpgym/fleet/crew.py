"""The workers of one front as one control plane: each token says whose it is, and who died is replaced."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcpgym.control import Load, OpenedEpisode
from mcpgym.episodes import MAX_TOMBSTONES, WITH_PROCESS, Episodes
from mcpgym.errors import EpisodeLost, ServerUnavailable, UnknownEpisodeError
from mcpgym.fleet.members import Member
from mcpgym.fleet.pool import ENDED, Pool
from mcpgym.fleet.workers import Worker
from mcpgym.names import name_in

T = TypeVar("T")

FATE_SECONDS = 2.0
"""How long it may take until a worker that stopped answering is known to be dead."""
ROOM_SECONDS = 20.0
"""How long a request waits for a worker where there is none just now: one is being started."""
NOBODY = "no process is ready to answer; try again in a moment"
SILENT = "lost, because the process that holds it does not answer"


class Crew(Pool):
    """The control plane before ``workers``; ``graves`` is where the episodes of dead ones are remembered.

    ``lost`` counts episodes that died with their worker, ``deaths`` the workers that did. ``ending`` says that no
    other will be started. Of a dead worker only the name is kept.
    """

    def __init__(self, graves: Episodes) -> None:
        super().__init__([])
        self.graves = graves
        self.lost = self.deaths = 0
        self.ending = False
        self._workers: dict[str, Worker] = {}
        self._dead: OrderedDict[str, None] = OrderedDict()
        self._opened: OrderedDict[str, tuple[str, bool]] = OrderedDict()

    def add(self, worker: Worker) -> None:
        """One more that answers."""
        self.members.append(worker.member)
        self._workers[worker.name] = worker

    def remove(self, worker: Worker, reason: str) -> int:
        """It has ended, and with it its episodes; how many there were that nobody had closed."""
        worker.member.gone, worker.member.up = True, False
        self.members = [member for member in self.members if member is not worker.member]
        self._workers.pop(worker.name, None)
        self._dead[worker.name] = None
        if len(self._dead) > MAX_TOMBSTONES:
            self._dead.popitem(last=False)
        ended = 0
        for token in [token for token in self._opened if name_in(token) == worker.name]:
            environment, closed = self._opened.pop(token)
            self.graves.bury(token, environment, "closed" if closed else reason)
            ended += not closed
        return ended

    def worker(self, name: str) -> Worker | None:
        """The worker of this name; None where there is none that lives."""
        return self._workers.get(name)

    def alive(self) -> list[Worker]:
        """Those that answer."""
        return list(self._workers.values())

    async def open(self, environment: str, **wanted: Any) -> OpenedEpisode:
        """Open an episode on the worker that has the least to do; where there is none just now, on the next there is.

        Raises:
            ServerUnavailable: none came.
            TooManyEpisodes, ServerDraining: none has room.
        """
        opening = super().open
        return await self._by_somebody(lambda: opening(environment, **wanted))

    async def close(self, token: str) -> None:
        """End the episode; ending one that has ended does nothing."""
        await super().close(token)
        if token in self._opened:
            self._opened[token] = (self._opened[token][0], True)

    async def load(self) -> Load:
        """All that the workers have to do; draining while there are none."""
        found = await super().load()
        return found if self.members else Load(0, found.cap, True)

    def _note(self, member: Member, opened: OpenedEpisode) -> None:
        self._opened[opened.token] = (opened.environment, False)
        if len(self._opened) > MAX_TOMBSTONES:
            self._opened.popitem(last=False)

    def _of(self, token: str) -> Member:
        name = name_in(token)
        if (worker := self._workers.get(name)) is not None:
            return worker.member
        if name not in self._dead:
            raise UnknownEpisodeError("no episode has this token")
        stone = self.graves.tombstone(token)
        raise EpisodeLost(f"{ENDED}{stone.reason if stone is not None else WITH_PROCESS}")

    async def _lost(self, member: Member, error: ServerUnavailable) -> EpisodeLost:
        if (worker := self._workers.get(member.name)) is not None:
            await worker.has_ended(FATE_SECONDS)
        return EpisodeLost(f"{ENDED}{WITH_PROCESS if member.gone else SILENT}")

    async def _any(self, method: str, *arguments: Any, **options: Any) -> Any:
        asking = super()._any
        return await self._by_somebody(lambda: asking(method, *arguments, **options))

    async def _by_somebody(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What one of the workers answers; while none does, one is being started, and is waited for."""
        deadline = time.monotonic() + ROOM_SECONDS
        while True:
            try:
                return await ask()
            except ServerUnavailable:
                if self.ending or time.monotonic() > deadline:
                    raise ServerUnavailable(NOBODY) from None
            await asyncio.sleep(0.05)

    def _begin_watching(self) -> None:
        """Whoever started the workers watches them."""

    async def _must_answer(self) -> None:
        """A front that answers is there, also while its workers are being replaced."""
