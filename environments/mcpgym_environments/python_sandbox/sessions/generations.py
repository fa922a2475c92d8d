"""Starts of a back-end, one after another: sessions come from the newest, and each ends when its last session has."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from mcpgym_environments.python_sandbox.sessions.backend import Backend, SandboxSpec, SessionLost, Stream, Unavailable
from mcpgym_environments.python_sandbox.sessions.held import CLOSED, Counts, Generation, quietly

logger = logging.getLogger(__name__)

RECYCLED_AFTER = 5_000
"""How many sessions one start of a back-end opens before another takes over."""
OPEN_SECONDS = 60.0
START_SECONDS = 600.0
"""Beyond any time a back-end takes by its own promise; only against one that breaks it."""


class Generations:
    """See the module. All but :meth:`dropped` is called at home.

    Args:
        backend: the first; not started.
        spec: what sessions are made of.
        recycled_after: how many sessions one start opens before another takes over.
        counts: of the starts are kept up.
        on_retire: is told which start opens no more sessions.
        on_begin: is called when one has begun.
    """

    def __init__(
        self,
        backend: Backend,
        spec: SandboxSpec,
        recycled_after: int,
        counts: Counts,
        on_retire: Callable[[Generation], None],
        on_begin: Callable[[], None],
    ) -> None:
        self.closed = False
        """Whether nothing more is to be started, nor tried again."""
        self.current: Generation | None = None
        """The start that sessions are opened in; None before the first."""
        self._backend = backend
        self._spec = spec
        self._recycled_after = recycled_after
        self._counts = counts
        self._on_retire = on_retire
        self._on_begin = on_begin
        self._lock = threading.Lock()
        self._all: list[Generation] = []
        self._beginning: Backend | None = None
        self._starting = asyncio.Lock()

    async def start(self) -> Generation:
        """The current start, which is the first if there was none.

        Raises:
            Unavailable: it cannot run here.
            SessionLost: the pool was closed.
        """
        async with self._starting:
            if self.closed:
                raise SessionLost(CLOSED)
            if self.current is None:
                await self._begin()
            assert self.current is not None
            return self.current

    async def opened(self) -> tuple[Stream, Generation]:
        """The stream of a fresh session; a back-end that gives none is replaced, once.

        Raises:
            Exception: what the back-end raised, the second time.
        """
        generation = await self.start()
        if generation.opened >= self._recycled_after and self._ages:
            generation = await self._replaced(generation)
        try:
            return await self._open_in(generation)
        except Exception as error:
            if self.closed:
                raise
            why = str(error) or type(error).__name__
            logger.warning("%s: a session did not open (%s); trying again", self._backend.name, why)
        return await self._open_in(await self._replaced(generation) if self._ages else generation)

    async def ended(self, stream: Stream, generation: Generation) -> None:
        """A session is over: what the back-end holds of it."""
        await quietly(generation.backend.kill(stream), "a sandbox session could not be ended")
        generation.live -= 1
        await self._close_if_done(generation)

    async def close(self) -> None:
        """End every start."""
        with self._lock:
            generations, self._all = self._all, []
        for generation in generations:
            await quietly(generation.backend.close(), f"{generation.backend.name} could not be closed")

    def dropped(self) -> list[Backend]:
        """What has been started, or is being started, for somebody else to end; from any thread."""
        with self._lock:
            backends = [generation.backend for generation in self._all]
            self._all.clear()
        if self._beginning is not None:
            backends.append(self._beginning)
        return backends

    @property
    def _ages(self) -> bool:
        """Whether another back-end can take over; asked when it has started, for only then is it known which it is."""
        return hasattr(self._backend, "another")

    async def _begin(self) -> None:
        """Start a back-end in place of the current one, which keeps its sessions until they end."""
        backend: Backend = self._backend
        if self._counts.starts:
            backend = backend.another()  # type: ignore[attr-defined]  # it ages, or this would be the first
        self._beginning = backend
        try:
            async with asyncio.timeout(START_SECONDS):
                facts = await backend.start(self._spec)
        except BaseException as error:
            await quietly(backend.close(), f"{backend.name} could not be closed")
            if isinstance(error, TimeoutError):
                raise Unavailable(f"{backend.name} did not start within {START_SECONDS:g} s", "") from None
            raise
        finally:
            self._beginning = None
        old, self.current = self.current, Generation(backend, dict(facts))
        with self._lock:
            self._all.append(self.current)
        self._counts.starts += 1
        if old is not None:
            old.retired = True
            self._on_retire(old)
            await self._close_if_done(old)
        self._on_begin()

    async def _replaced(self, old: Generation) -> Generation:
        async with self._starting:
            if self.current is old:
                await self._begin()
            assert self.current is not None
            return self.current

    async def _open_in(self, generation: Generation) -> tuple[Stream, Generation]:
        generation.opened += 1
        generation.live += 1
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                return await generation.backend.open(self._spec), generation
        except BaseException:
            generation.live -= 1
            await self._close_if_done(generation)
            raise

    async def _close_if_done(self, generation: Generation) -> None:
        if not generation.retired or generation.live:
            return
        with self._lock:
            if generation not in self._all:
                return
            self._all.remove(generation)
        await quietly(generation.backend.close(), f"{generation.backend.name} could not be closed")
