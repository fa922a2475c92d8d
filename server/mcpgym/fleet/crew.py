"""The workers of one front as one control plane: each token says whose it is, and who died is replaced."""

from __future__ import annotations

from collections import OrderedDict

from mcpgym.control import Load, OpenedEpisode
from mcpgym.episodes import MAX_TOMBSTONES, WITH_PROCESS, Episodes
from mcpgym.errors import EpisodeLost, ServerUnavailable, UnknownEpisodeError
from mcpgym.fleet.members import Member
from mcpgym.fleet.pool import ENDED, Pool
from mcpgym.fleet.workers import Worker
from mcpgym.names import name_in

FATE_SECONDS = 2.0
"""How long it may take until a worker that stopped answering is known to be dead."""


class Crew(Pool):
    """The control plane before ``workers``; ``graves`` is where the episodes of dead ones are remembered.

    ``lost`` counts episodes that died with their worker, ``deaths`` the workers that did.
    """

    def __init__(self, graves: Episodes) -> None:
        super().__init__([])
        self.graves = graves
        self.lost = self.deaths = 0
        self._workers: dict[str, Worker] = {}
        self._opened: OrderedDict[str, tuple[str, bool]] = OrderedDict()

    def add(self, worker: Worker) -> None:
        """One more that answers."""
        self.members.append(worker.member)
        self._workers[worker.name] = worker

    def remove(self, worker: Worker, reason: str) -> int:
        """It has ended, and with it its episodes; how many there were that nobody had closed."""
        worker.member.gone, worker.member.up = True, False
        self.members = [member for member in self.members if member is not worker.member]
        ended = 0
        for token in [token for token in self._opened if name_in(token) == worker.name]:
            environment, closed = self._opened.pop(token)
            self.graves.bury(token, environment, "closed" if closed else reason)
            ended += not closed
        return ended

    def worker(self, name: str) -> Worker | None:
        """The worker of this name, dead or alive; None where there never was one."""
        return self._workers.get(name)

    def alive(self) -> list[Worker]:
        """Those that answer."""
        return [worker for worker in self._workers.values() if not worker.member.gone]

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
        worker = self._workers.get(name_in(token))
        if worker is None:
            raise UnknownEpisodeError("no episode has this token")
        if worker.member.gone:
            stone = self.graves.tombstone(token)
            raise EpisodeLost(f"{ENDED}{stone.reason if stone is not None else WITH_PROCESS}")
        return worker.member

    async def _lost(self, member: Member, error: ServerUnavailable) -> EpisodeLost:
        await self._workers[member.name].has_ended(FATE_SECONDS)
        if member.gone:
            return EpisodeLost(f"{ENDED}{WITH_PROCESS}")
        return await super()._lost(member, error)

    async def _must_answer(self) -> None:
        """A front that answers is there, also while its workers are being replaced."""
