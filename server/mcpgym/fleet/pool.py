"""A control plane over several servers: an episode is opened where there is least to do, and stays there.

Whoever plays it talks to its server directly: the pool is no proxy, it only knows which control plane an episode has.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from mcpgym.calls import CallRecord, CallResult
from mcpgym.control import Call, EnvironmentInfo, EpisodeStatus, Load, OpenedEpisode, TaskInfo
from mcpgym.control_client import HttpControl
from mcpgym.errors import (
    ConfigurationError,
    EpisodeError,
    EpisodeLost,
    ServerDraining,
    ServerUnavailable,
    TooManyEpisodes,
    UnknownEpisodeError,
)
from mcpgym.fleet.members import Member, same_environments
from mcpgym.messages import Message
from mcpgym.rewards import Score

LOOK_SECONDS = 1.0
"""How often each server is asked how much it has to do."""
ENDED = "this episode has ended: "
DIED_AT_MOST = 2
"""How many servers may die while they open one episode, before it is taken for the cause, and no other is asked."""
MAX_KNOWN = 200_000
"""How many episodes a pool remembers the servers of."""


class Pool:
    """A :class:`~mcpgym.control.ControlPlane` over ``members``.

    A server that does not answer is left out until it does again. An episode whose server is gone is lost: every
    question about it raises :class:`~mcpgym.errors.EpisodeLost`, and its task may be opened again, elsewhere.

    Use it within one event loop, and :meth:`aclose` it there, which closes its members' connections.
    """

    several = True
    """Whether what one server lost may be opened again on another."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = list(members)
        self._known: OrderedDict[str, Member] = OrderedDict()
        self._turns = itertools.count()
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    async def of(cls, controls: Sequence[HttpControl]) -> Pool:
        """A pool of servers that serve the same.

        Raises:
            ServerUnavailable: none answers.
            ConfigurationError: two of them differ, or are one.
        """
        urls = [control.url for control in controls]
        if twice := {url for url in urls if urls.count(url) > 1}:
            raise ConfigurationError(f"the server {min(twice)} is named twice")
        pool = cls([Member(control.url, control) for control in controls])
        await same_environments(pool.members)
        await pool.look()
        return pool

    async def environments(self) -> list[EnvironmentInfo]:
        """Every environment that is served, as any of the servers says it."""
        return await self._any("environments")  # type: ignore[no-any-return]

    async def tasks(self, environment: str, split: str, **page: Any) -> list[TaskInfo]:
        """Tasks of a split, as any of the servers lists them."""
        return await self._any("tasks", environment, split, **page)  # type: ignore[no-any-return]

    async def open(
        self,
        environment: str,
        *,
        task: str | None = None,
        split: str | None = None,
        index: int | None = None,
        seed: int = 0,
        config: Mapping[str, Any] | None = None,
        max_turns: int | None = None,
    ) -> OpenedEpisode:
        """Open an episode on the server that has the least to do; where one cannot, on the next.

        Raises:
            ServerUnavailable: no server answers.
            TooManyEpisodes, ServerDraining: none of those that answer has room.
            EpisodeError: as many servers as may died of it.
        """
        self._begin_watching()
        tried: set[Member] = set()
        died = 0
        refusal: Exception | None = None
        while (member := self.least(tried)) is not None:
            tried.add(member)
            if died:
                await member.look()
                if not member.up:  # which so did not die of this
                    continue
            member.opening += 1
            try:
                async with member.asked() as control:
                    opened = await control.open(
                        environment, task=task, split=split, index=index, seed=seed, config=config, max_turns=max_turns
                    )
            except (TooManyEpisodes, ServerDraining, ServerUnavailable) as error:
                if refusal is None or isinstance(refusal, ServerUnavailable):
                    refusal = error
                if isinstance(error, ServerUnavailable) and error.in_mid_request:
                    died += 1
                    if died == DIED_AT_MOST:
                        raise EpisodeError(f"{died} servers died while they opened this episode") from error
                continue
            finally:
                member.opening -= 1
            member.begun += 1
            self._note(member, opened)
            return opened
        raise refusal or self._nobody()

    async def calls(self, token: str) -> list[CallRecord]:
        """Every call that the episode has answered, in order."""
        async with self._server_of(token) as control:
            return await control.calls(token)

    async def step(self, calls: Sequence[Call]) -> list[CallResult]:
        """Answer many calls: each server gets those of its episodes, side by side."""
        results: list[CallResult] = [CallResult("")] * len(calls)
        places: dict[Member, list[int]] = {}
        for place, call in enumerate(calls):
            try:
                places.setdefault(self._of(call.token), []).append(place)
            except (EpisodeLost, UnknownEpisodeError) as error:
                results[place] = CallResult(str(error), is_error=True, done=True)

        async def ask(member: Member, mine: Sequence[int]) -> None:
            try:
                async with member.asked() as control:
                    answers = await control.step([calls[place] for place in mine])
            except ServerUnavailable as error:
                text = str(await self._lost(member, error))
                answers = [CallResult(text, is_error=True, done=True)] * len(mine)
            for place, answer in zip(mine, answers, strict=True):
                results[place] = answer

        await asyncio.gather(*(ask(member, mine) for member, mine in places.items()))
        return results

    async def respond(self, token: str, messages: Sequence[Message]) -> list[Message] | None:
        """What the environment says as the user after ``messages``; None ends the rollout."""
        async with self._server_of(token) as control:
            return await control.respond(token, messages)

    async def status(self, token: str) -> EpisodeStatus:
        """Where the episode stands; also of one that has ended, or was lost."""
        try:
            async with self._server_of(token) as control:
                return await control.status(token)
        except EpisodeLost as error:
            why = str(error).removeprefix(ENDED)
            return EpisodeStatus(done=True, turns=0, stop_reason=None, ended=why, lost=True)
        except UnknownEpisodeError:
            await self._must_answer()
            raise

    async def score(
        self, token: str, messages: Sequence[Message] | None = None, *, claims: Mapping[str, str] | None = None
    ) -> Score:
        """The score, with the transcript where there is one; signed where the server signs."""
        async with self._server_of(token) as control:
            return await control.score(token, messages, claims=claims)

    async def close(self, token: str) -> None:
        """End the episode. One whose server is gone has ended."""
        with contextlib.suppress(EpisodeLost):
            async with self._server_of(token) as control:
                await control.close(token)
            self._of(token).begun -= 1

    async def load(self) -> Load:
        """All that the servers which answer have to do: as they said last, and what was opened since."""
        there = [member for member in self.members if member.up and not member.gone]
        return Load(
            sum(max(member.load.live + member.begun, 0) for member in there),
            sum(member.load.cap for member in there),
            bool(there) and all(member.load.draining for member in there),
        )

    async def look(self) -> None:
        """Ask every server how much it has to do."""
        await asyncio.gather(*(member.look() for member in self.members if not member.gone))

    def least(self, tried: set[Member] | None = None) -> Member | None:
        """Who has the least to do and was not ``tried``; between equals they take turns. None where there is nobody.

        When all that are left look down, one of them is named nevertheless: it may be back.
        """
        left = [member for member in self.members if not member.gone and member not in (tried or ())]
        ready = [member for member in left if member.takes_episodes]
        turn = next(self._turns)
        order = [*ready[turn % len(ready) :], *ready[: turn % len(ready)]] if ready else []
        return min(order, key=lambda member: member.share, default=left[turn % len(left)] if left else None)

    async def aclose(self) -> None:
        """Close the connections. The servers and their episodes live on."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.cancel()
            await asyncio.wait({watch})
        await asyncio.gather(*(member.control.aclose() for member in self.members))

    def _note(self, member: Member, opened: OpenedEpisode) -> None:
        self._known[opened.token] = member
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def _of(self, token: str) -> Member:
        """The server of an episode.

        Raises:
            EpisodeLost: it is gone.
            UnknownEpisodeError: this pool opened no such episode.
        """
        member = self._known.get(token)
        if member is None:
            raise UnknownEpisodeError("no episode has this token")
        if member.gone:
            raise EpisodeLost(f"{ENDED}lost with its server, {member.name}")
        return member

    async def _lost(self, member: Member, error: ServerUnavailable) -> EpisodeLost:
        """What to say of an episode whose server did not answer."""
        return EpisodeLost(f"{ENDED}lost with its server: {error}")

    @contextlib.asynccontextmanager
    async def _server_of(self, token: str) -> AsyncIterator[HttpControl]:
        member = self._of(token)
        try:
            async with member.asked() as control:
                yield control
        except ServerUnavailable as error:
            raise await self._lost(member, error) from error

    async def _any(self, method: str, *arguments: Any, **options: Any) -> Any:
        tried: set[Member] = set()
        while (member := self.least(tried)) is not None:
            tried.add(member)
            with contextlib.suppress(ServerUnavailable):
                async with member.asked() as control:
                    return await getattr(control, method)(*arguments, **options)
        raise self._nobody()

    async def _must_answer(self) -> None:
        """See that a server is there.

        Raises:
            ServerUnavailable: none is.
        """
        await self.look()
        if not any(member.up and not member.gone for member in self.members):
            raise self._nobody()

    def _nobody(self) -> ServerUnavailable:
        names = ", ".join(member.name for member in self.members)
        return ServerUnavailable(f"none of the environment servers answers ({names})")

    def _begin_watching(self) -> None:
        if self._watch is None:
            self._watch = asyncio.ensure_future(self._look_forever())

    async def _look_forever(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look()
