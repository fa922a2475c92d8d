"""What a pool does in its home thread: opens sessions ahead of need, and ends what is to end.

It knows streams, not sessions, and nothing of the loops that use them. Nothing holds it but its thread and who asked
for a pool: the pool ends it when it is closed, forgotten, or when the interpreter exits.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Backend, SandboxSpec, SessionLost
from mcpgym_environments.python_sandbox.sessions.generations import Generations
from mcpgym_environments.python_sandbox.sessions.held import CLOSE_SECONDS, CLOSED, Counts, Generation, Held
from mcpgym_environments.python_sandbox.sessions.home import Home
from mcpgym_environments.python_sandbox.sessions.memory_guard import GUARD, Guarded

logger = logging.getLogger(__name__)

LEAST_READY, MOST_READY = 4, 32
"""How many sessions are kept ready: twice as many as were opened in the last second, within these."""
AT_ONCE = 4
"""How many are being opened at once."""
TICK_SECONDS = 0.5
QUIET_SECONDS = 30.0
"""Sessions beyond the least are ended when none was opened for so long."""


@dataclass(eq=False)
class Keeper:
    """See the module. ``fixed`` is how many sessions are kept ready; None to follow the demand."""

    backend: Backend
    spec: SandboxSpec
    fixed: int | None
    recycled_after: int
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self.home = Home(f"mcpgym sandbox: {self.backend.name}")
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._ready: deque[Held] = deque()
        self._waiting: deque[Future[Held]] = deque()
        self._held: set[Held] = set()
        self._generations = Generations(
            self.backend, self.spec, self.recycled_after, self.counts, self._retire, self._refill
        )
        self._opening = 0
        self._openings: set[asyncio.Task[None]] = set()
        self._retry_at = 0.0
        self._watching: asyncio.Task[None] | None = None
        self._taken: deque[float] = deque(maxlen=4 * MOST_READY)
        self.unwanted = False
        self.forgotten: deque[Held] = deque()
        """Sessions that the garbage collector found; it takes no lock, and the next tick ends them."""
        _KEEPERS.add(self)

    # From any thread.

    def start(self) -> Future[Mapping[str, JSON]]:
        """Start the back-end if it is not; its facts.

        Raises (in the future):
            Unavailable: it cannot run here.
        """
        self._refuse_forks()
        return self.home.submit(self._start())

    def take(self) -> Held | Future[Held]:
        """A session that nobody has had; if none is ready, one that comes.

        Raises:
            SessionLost: the pool was closed.
            ConfigurationError: it is another process's.
        """
        self._refuse_forks()
        with self._lock:
            if self._generations.closed:
                raise SessionLost(CLOSED)
            self._taken.append(time.monotonic())
            self.counts.opened += 1
            if self._ready:
                held: Held | Future[Held] = self._ready.popleft()
            else:
                held = Future()
                self._waiting.append(held)
                self.counts.cold += 1
            low = 2 * len(self._ready) < self._target() or isinstance(held, Future)
        if low:  # else the next tick will do: who opens a session now need not share a processor with the next one's
            self.home.call(self._refill)
        return held

    def end(self, held: Held, why: str = "nobody has it any more") -> None:
        """A session is over: its processes now, what its back-end holds of it soon. Who still waits there hears why."""
        if os.getpid() != self._process:
            return  # a fork of the server: the session is its parent's
        with self._lock:
            if held.gone:
                return
            held.gone = True
            self._held.discard(held)
            if held in self._ready:  # the memory guard takes those too
                self._ready.remove(held)
            self.counts.ended += 1
        if held.on_end is not None:
            held.on_end(why)
        held.stream.kill()
        self.home.call(lambda: self._release(held))

    def guarded(self) -> Iterable[Guarded]:
        """The sessions that live, for the memory guard."""
        if os.getpid() != self._process:
            return []
        with self._lock:
            return list(self._held)

    def forget(self) -> None:
        """Nobody has the pool any more. Called by the garbage collector, at any point of any thread: takes no lock."""
        self.unwanted = True

    def come_too_late(self, future: Future[Held]) -> None:
        """A session came to somebody who no longer waits."""
        if not future.cancelled() and future.exception() is None:
            self.home.call(partial(self._offer, future.result()))

    def gauges(self) -> dict[str, float]:
        """Numbers as they stand."""
        with self._lock:
            return {
                "sessions_ready": float(len(self._ready)),
                "sessions_live": float(len(self._held) - len(self._ready)),
                "sessions_waited_for": float(len(self._waiting)),
                "sessions_opened": float(self.counts.opened),
                "sessions_opened_cold": float(self.counts.cold),
                "sessions_ended": float(self.counts.ended),
                "sessions_failed_to_open": float(self.counts.failed),
                "sessions_ended_for_memory": float(self.counts.sacrificed),
                "backend_starts": float(self.counts.starts),
            }

    def close(self) -> Future[None]:
        """End every session and back-end; :meth:`stop` follows."""
        return self.home.submit(self._close())

    def stop(self) -> None:
        """End the thread."""
        with self._lock:
            self._generations.closed = True
        self.home.stop()

    def kill_now(self) -> None:
        """End everything without waiting: the interpreter exits, or nobody has the pool any more."""
        if os.getpid() != self._process:
            return
        with self._lock:
            backends = self._generations.dropped()
            if self._generations.closed and not backends:
                return
            self._generations.closed = True
            held = list(self._held)
            for one in held:
                one.gone = True
            self._held.clear()
            self._ready.clear()
        for one in held:
            if one.on_end is not None:
                one.on_end(CLOSED)
            one.stream.kill()
        for backend in backends:
            try:
                backend.kill_now()
            except Exception:
                logger.exception("%s could not be ended", backend.name)
        self._fail_waiting(SessionLost(CLOSED))
        self.home.stop()

    def _refuse_forks(self) -> None:
        if os.getpid() != self._process:
            raise ConfigurationError("this pool of sandbox sessions is that of another process, which forked this one")

    # At home.

    async def _start(self) -> Mapping[str, JSON]:
        self._begin_to_watch()
        return (await self._generations.start()).facts

    def _begin_to_watch(self) -> None:
        """With the first thing that is asked."""
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())
            GUARD.watch(self)

    def _retire(self, generation: Generation) -> None:
        """What was ready of a start that opens no more sessions goes with it."""
        with self._lock:
            stale = [held for held in self._ready if held.generation is generation]
            for held in stale:
                self._ready.remove(held)
        for held in stale:
            self.end(held)

    def _target(self) -> int:
        """How many sessions should be ready."""
        if self.fixed is not None:
            return self.fixed
        now = time.monotonic()
        rate = sum(at > now - 1.0 for at in self._taken)
        return min(max(2 * rate, LEAST_READY), MOST_READY)

    def _refill(self) -> None:
        """Open as many sessions as are missing, a few at once."""
        if self._generations.closed or self.unwanted:
            return
        with self._lock:
            waiting = sum(not future.done() for future in self._waiting)
            wanted = waiting + max(0, self._target() - len(self._ready))
        if not waiting and (self._generations.current is None or time.monotonic() < self._retry_at):
            return
        while self._opening < min(wanted, int(getattr(self.backend, "at_once", AT_ONCE))):
            self._opening += 1
            task = asyncio.get_running_loop().create_task(self._open_one())
            self._openings.add(task)
            task.add_done_callback(self._openings.discard)

    async def _open_one(self) -> None:
        try:
            held = await self._opened()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._opening -= 1
            if self._generations.closed:
                return
            self.counts.failed += 1
            self._retry_at = time.monotonic() + 1.0
            logger.warning("%s: no session could be opened: %s", self.backend.name, error)
            self._fail_waiting(error, 1)
            self._refill()
            return
        self._opening -= 1
        self._offer(held)
        self._refill()

    async def _opened(self) -> Held:
        self._begin_to_watch()
        stream, generation = await self._generations.opened()
        held = Held(stream, generation, lambda *_: self.end(held))
        with self._lock:
            self._held.add(held)
        if self._generations.closed:
            self.end(held, CLOSED)
            raise SessionLost(CLOSED)
        return held

    def _offer(self, held: Held) -> None:
        """To who waits longest, else to those that are ready."""
        with self._lock:
            while self._waiting:
                future = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    future.set_result(held)
                    return
            if not held.generation.retired:
                self._ready.append(held)
                return
        self.end(held)

    def _fail_waiting(self, error: Exception, count: int | None = None) -> None:
        with self._lock:
            failed: list[Future[Held]] = []
            while self._waiting and (count is None or len(failed) < count):
                future = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    failed.append(future)
        for future in failed:
            future.set_exception(error)

    def _release(self, held: Held) -> None:
        task = asyncio.get_running_loop().create_task(self._generations.ended(held.stream, held.generation))
        self._openings.add(task)
        task.add_done_callback(self._openings.discard)

    async def _watch(self) -> None:
        """Guard the memory, let go of what is ready for nobody, and try again what did not open."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self.unwanted:
                self.kill_now()
                return
            while self.forgotten:
                self.end(self.forgotten.popleft())
            if GUARD.look():
                continue
            self._refill()
            quiet = not self._taken or time.monotonic() - self._taken[-1] > QUIET_SECONDS
            with self._lock:
                spare = self._ready.pop() if quiet and len(self._ready) > self._target() else None
            if spare is not None:
                self.end(spare)

    async def _close(self) -> None:
        with self._lock:
            self._generations.closed = True
            held = list(self._held)
            self._ready.clear()
        self._fail_waiting(SessionLost(CLOSED))
        if self._watching is not None:
            self._watching.cancel()
        for one in held:
            self.end(one, CLOSED)
        await asyncio.sleep(0)  # what was asked of this loop begins
        if self._openings:
            await asyncio.wait(list(self._openings), timeout=CLOSE_SECONDS)
        for task in list(self._openings):
            task.cancel()
        await self._generations.close()


_KEEPERS: weakref.WeakSet[Keeper] = weakref.WeakSet()


@atexit.register
def _at_exit() -> None:
    for keeper in list(_KEEPERS):
        keeper.kill_now()
