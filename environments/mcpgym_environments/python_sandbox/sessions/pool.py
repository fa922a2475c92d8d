"""Sessions kept ready: opening one takes a millisecond, whatever it takes to make one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.sessions.asking import Broker
from mcpgym_environments.python_sandbox.sessions.backend import (
    JSON,
    MAX_SEED,
    Backend,
    SandboxSpec,
    SessionLost,
)
from mcpgym_environments.python_sandbox.sessions.generations import RECYCLED_AFTER
from mcpgym_environments.python_sandbox.sessions.held import CLOSED, Counts, Held
from mcpgym_environments.python_sandbox.sessions.keeper import MOST_READY, Keeper
from mcpgym_environments.python_sandbox.sessions.session import SLACK_SECONDS, Counters, Session
from mcpgym_environments.python_sandbox.sessions.turns import Turns

T = TypeVar("T")

TRIES = 3
"""How many sessions, made for who opens one, may turn out to be dead; any that were kept ready are passed over."""
OWN_DOING = 0.25
"""A session that is ended for want of memory has itself to thank if it held more than this share of what it may."""
CLOSE_PATIENCE = 30.0
"""Seconds that closing may take before everything is killed."""


class Pool:
    """Opens sessions of one back-end and one specification, from any event loop, also from several at once.

    It works in a thread of its own, so nothing of it belongs to the loop that it is used from: several
    ``asyncio.run`` one after another share one pool. Forgotten, or at the exit of the interpreter, it ends what it
    has; a server that is killed leaves that to the agents, which end with their streams.

    Args:
        backend: not started; the pool owns it from now on.
        spec: what sessions are made of; their seeds are given one by one.
        ready: how many sessions to keep ready; by default twice as many as were opened in the last second, 4 to 32.
        executing: how many calls may execute at once, over all sessions; by default two for each processor.
        recycled_after: how many sessions one start of the back-end serves.

    Raises:
        ConfigurationError: a number is out of range.
    """

    def __init__(
        self,
        backend: Backend,
        spec: SandboxSpec,
        *,
        ready: int | None = None,
        executing: int | None = None,
        recycled_after: int = RECYCLED_AFTER,
    ) -> None:
        executing = 2 * (os.cpu_count() or 1) if executing is None else executing
        if executing < 1 or recycled_after < 1 or (ready is not None and ready < 0):
            raise ConfigurationError("a pool: executing and recycled_after are at least 1, and ready is not negative")
        self.spec = spec
        self.counters = Counters()
        """Calls made and sessions lost, in all sessions."""
        self._turns = Turns(executing)
        self._keeper = Keeper(backend, spec, ready, recycled_after)
        self._facts: Mapping[str, JSON] = {}
        self._end = weakref.finalize(self, self._keeper.forget)

    @property
    def backend(self) -> Backend:
        """The back-end it was made with."""
        return self._keeper.backend

    @property
    def facts(self) -> Mapping[str, JSON]:
        """What the back-end said of this machine when it started; nothing before."""
        return self._facts

    @property
    def counts(self) -> Counts:
        """What has been opened and ended."""
        return self._keeper.counts

    async def start(self) -> Mapping[str, JSON]:
        """Start the back-end, if it is not started yet; its facts. Opening a session does it too.

        Raises:
            Unavailable: it cannot run here; the text says why and what to do.
            SessionLost: the pool was closed.
        """
        if not self._facts:
            self._facts = await self._asked(self._keeper.start)
        return self._facts

    async def open(self, seed: int = 0, broker: Broker | None = None) -> Session:
        """A fresh session whose random generators begin with ``seed``. End it with :meth:`Session.kill`.

        With a ``broker`` its code has ``llm`` and ``llm_batch``, which that one answers.

        Raises:
            Unavailable: the back-end cannot run here, and never has.
            SessionLost: none could be opened, or the pool was closed.
            ConfigurationError: the seed is out of range.
        """
        spec = SandboxSpec(self.spec.limits, self.spec.packages, _checked(seed))
        await self.start()
        cold = 0
        for left in reversed(range(MOST_READY + TRIES)):
            held = self._keeper.take()
            if isinstance(held, Future):
                cold += 1
                held = await self._came(held)
            session = self._session(held, broker)
            try:
                await session.hello(spec)
            except SessionLost:
                if cold == TRIES or not left:
                    raise
            except BaseException:
                session.kill("it was not wanted any more")
                raise
            else:
                return session
        raise AssertionError("unreachable")

    def gauges(self) -> dict[str, float]:
        """Numbers for metrics, as they stand."""
        return {
            **self._keeper.gauges(),
            "sessions_lost": float(self.counters.lost),
            "calls": float(self.counters.calls),
            "calls_executing": float(self._turns.busy),
            "calls_waiting": float(self._turns.waiting),
        }

    async def close(self) -> None:
        """End every session and the back-end. Closing twice does nothing; a closed pool opens nothing more."""
        with contextlib.suppress(TimeoutError, SessionLost):
            async with asyncio.timeout(CLOSE_PATIENCE):
                await self._asked(self._keeper.close)
        await asyncio.to_thread(self._shut)

    def _shut(self) -> None:
        self._keeper.kill_now()
        self._keeper.stop()
        self._end.detach()

    def _session(self, held: Held, broker: Broker | None) -> Session:
        """A session over a stream; it keeps this pool alive, and forgotten it is ended like any other."""
        keeper = self._keeper
        session = Session(
            held.stream,
            self.spec.limits,
            turns=self._turns,
            on_end=partial(keeper.end, held),
            slack=float(getattr(keeper.backend, "slack", SLACK_SECONDS)),
            counters=self.counters,
            owner=self,
            broker=broker,
        )
        weakref.finalize(session, keeper.forgotten.append, held).atexit = False
        held.on_end = partial(_tell, weakref.ref(session))
        held.on_sacrifice = partial(_sacrifice, weakref.ref(session), keeper, held)
        return session

    async def _came(self, future: Future[Held]) -> Held:
        """The session that was asked for; one that comes when nobody waits any more goes to the next."""
        try:
            return await asyncio.wrap_future(future)
        except (asyncio.CancelledError, GeneratorExit):
            future.add_done_callback(self._keeper.come_too_late)
            raise
        except SessionLost:
            raise
        except Exception as error:  # ``Unavailable`` too: it ran here, and an episode that goes on cannot help it
            why = str(error) or type(error).__name__
            raise SessionLost(f"no sandbox session could be opened: {why}") from error

    async def _asked(self, ask: Callable[[], Future[T]]) -> T:
        try:
            future = ask()
        except RuntimeError:
            raise SessionLost(CLOSED) from None
        return await asyncio.shield(asyncio.wrap_future(future))


def _tell(session: weakref.ref[Session], why: str) -> None:
    if (alive := session()) is not None:
        alive.kill(why)


def _sacrifice(session: weakref.ref[Session], keeper: Keeper, held: Held, why: str, size: int) -> None:
    keeper.counts.sacrificed += 1
    if (alive := session()) is not None:
        alive.kill(why, spent=size > OWN_DOING * alive.limits.memory)
    keeper.end(held)


def _checked(seed: int) -> int:
    if type(seed) is not int or not 0 <= seed <= MAX_SEED:
        raise ConfigurationError(f"sandbox seed {seed!r} is no whole number in 0 to 2**63 - 1")
    return seed
