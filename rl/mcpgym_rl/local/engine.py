"""Continuous batching: many conversations share the rows of one backend, and whoever has something to say decodes.

A :class:`Line` is one conversation: its ids, and the row that holds the keys and values of its first tokens, if it has
one. :meth:`Line.generate` appends a chunk and samples a turn. One task serves all lines, step by step: those that
finished leave, those that came in are appended together and join, and every step decodes all that are under way.

``rows`` says who has which row, ``turns`` what is sampled in them, and ``openings`` keeps prompts computed.

The task runs on the event loop and lets everyone speak before each step, in a fixed manner: with an in-process
environment the same run makes the same batches, to the last bit. Large models compute in a thread instead.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Iterable
from typing import TypeVar

from mcpgym_rl.local.backend import Backend, Ints, Logits
from mcpgym_rl.local.line import Line, Request, Sampled
from mcpgym_rl.local.openings import Openings
from mcpgym_rl.local.rows import Rows
from mcpgym_rl.local.turns import Turns
from mcpgym_rl.policy import PolicyError

T = TypeVar("T")

PATIENCE = 24
"""Turns of the event loop for which lines that are about to speak are waited for before a step."""
_SLACK = 16


class Engine:
    """Serves lines over a backend.

    Args:
        backend: what computes.
        end_ids: tokens that end a turn.
        rows: how many conversations may be in the cache at once; more wait, or take the place of resting ones.
        cache_bytes: how much memory the cache may take; it allows fewer rows where conversations are long.
    """

    def __init__(
        self, backend: Backend, end_ids: Iterable[int], *, rows: int = 256, cache_bytes: int = 4 << 30
    ) -> None:
        self.backend = backend
        self.positions = backend.positions
        self.expected: set[Line] = set()
        self._open: weakref.WeakSet[Line] = weakref.WeakSet()
        self.turns = Turns(backend, end_ids)
        self.rows = Rows(backend, self.turns, most=rows, cache_bytes=cache_bytes)
        self.openings = Openings(backend)
        self._asking: dict[Request, None] = {}
        self._waiting: list[Request] = []
        self._asked = 0
        self._busy = False
        self._later: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self.steps = self.row_steps = self.appended = 0

    # What lines ask.

    def open(self, seed: int) -> Line:
        """A new conversation, about to ask for its first turn. Before the first of all, live weights are taken."""
        if not self._open:
            self.refresh()
        line = Line(self, seed)
        self._open.add(line)
        line.expect(True)
        return line

    async def serve(self, line: Line, limit: int, temperature: float, min_p: float) -> Sampled:
        """Sample a turn of ``line``; see :meth:`Line.generate`."""
        line.expect(False)
        request = Request(line, limit, temperature, min_p, asyncio.get_running_loop().create_future())
        line._request = request
        self._asked += 1
        self._asking[request] = None
        self._waiting.append(request)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work(), name="local engine")
        try:
            made = await request.future
        finally:
            line._request = None
            del self._asking[request]
            if not request.future.done() or request.future.cancelled():
                self._abandon(request)
        line.expect(True)
        return made

    def release(self, line: Line) -> None:
        """``line`` has ended: its row is free."""
        if self._busy:
            self._later.append(lambda: self.release(line))
            return
        if line._request is not None:
            line._request.future.cancel()
            self._abandon(line._request)
        self._open.discard(line)
        line._source = None
        self.rows.release(line)

    def refresh(self) -> None:
        """Take live weights as they are now, and drop what was computed with others."""
        if self.backend.refresh():
            self.forget()

    def forget(self) -> None:
        """Drop everything computed."""
        self.rows.forget()
        self.openings.clear()

    async def aclose(self) -> None:
        """Stop; turns under way are cancelled."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        self._task = None

    # The work.

    async def _work(self) -> None:
        try:
            while self._waiting or self.turns.running:
                await self._listen()
                if self._waiting:
                    await self._do(self._admit)
                if self.turns.running:
                    await self._do(self._step)
        except Exception as error:
            failed = error if isinstance(error, PolicyError) else PolicyError(f"{type(error).__name__}: {error}")
            failed.__cause__ = None if failed is error else error
            self._fail(failed)
        except asyncio.CancelledError:
            self._fail(None)
            raise

    async def _do(self, work: Callable[[], list[tuple[Request, Sampled]]]) -> None:
        """Compute, on the loop or in a thread, and hand out what was finished."""
        if self.backend.small:
            made = work()
        else:
            made = await self._in_thread(work)
        for request, sampled in made:
            if not request.future.done():
                request.future.set_result(sampled)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Compute in a thread; what others want to change meanwhile is changed after it."""
        self._busy = True
        computing = asyncio.get_running_loop().run_in_executor(None, work)
        try:
            return await asyncio.shield(computing)
        except asyncio.CancelledError:
            await asyncio.wait([computing])
            raise
        finally:
            self._busy = False
            later, self._later = self._later, []
            for change in later:
                change()

    async def _listen(self) -> None:
        """Let everyone speak who is about to: as long as some arrive or are expected, but not for ever."""
        for _ in range(PATIENCE):
            asked = self._asked
            await asyncio.sleep(0)
            if not self.expected and self._asked == asked:
                return
        for line in list(self.expected):  # those are slow, and not waited for again before they have spoken
            line.expect(False)

    def _fail(self, error: PolicyError | None) -> None:
        """Every turn that is asked for fails, and what is in the cache is not believed any more."""
        for request in list(self._asking):
            if request.future.done():
                continue
            if error is None:
                request.future.cancel()
            else:
                request.future.set_exception(type(error)(str(error)))
        self._waiting.clear()
        for row in list(self.turns.running):
            self._stop(row)
        self.forget()

    def _abandon(self, request: Request) -> None:
        """Nobody waits for this turn any more."""
        if self._busy:
            self._later.append(lambda: self._abandon(request))
        elif request in self._waiting:
            self._waiting.remove(request)
        elif request.line.row is not None and self.turns.running.get(request.line.row) is request:
            self._stop(request.line.row)

    def _stop(self, row: int) -> None:
        """The turn under way in a row is over, and its line rests."""
        self.turns.stop(row)
        self.rows.rest(row)

    def _lengthen(self, needed: int) -> None:
        """Make rows that take ``needed`` tokens; turns that lose theirs wait."""
        self._waiting.extend(self.rows.lengthen(needed, self.positions))

    # Appending.

    def _admit(self) -> list[tuple[Request, Sampled]]:
        """Give rows to those who wait, append what is new of each, and sample the first token of each turn."""
        waiting = [request for request in self._waiting if not request.future.done()]
        if not waiting:
            return []
        self._lengthen(max(min(len(one.line.ids) + min(one.limit, _SLACK), self.positions) for one in waiting))
        for request in waiting:
            self.rows.wake(request.line)
        admitted = [request for request in waiting if self.rows.give(request.line)]
        taken = set(admitted)
        self._waiting = [request for request in self._waiting if request not in taken and not request.future.done()]
        done: list[tuple[Request, Sampled]] = []
        fresh: dict[tuple[int, ...], list[Request]] = {}
        going: list[Request] = []
        for request in admitted:
            self.rows.inherit(request.line)
            request.line.cached = min(request.line.cached, len(request.line.ids) - 1)
            if request.line.cached == 0:
                fresh.setdefault(tuple(request.line.ids), []).append(request)
            else:
                going.append(request)
        done += self._begin(fresh)
        if going:
            rows = [request.line.row for request in going]
            chunks = [request.line.ids[request.line.cached :] for request in going]
            logits = self.backend.append(rows, [request.line.cached for request in going], chunks)  # type: ignore[arg-type]
            self.appended += sum(map(len, chunks))
            done += self._joined(going, logits)
        return done

    def _begin(self, fresh: dict[tuple[int, ...], list[Request]]) -> list[tuple[Request, Sampled]]:
        """Lines of which nothing is in the cache: each different one is computed once."""
        unknown = [ids for ids in fresh if ids not in self.openings]
        if unknown:
            rows = [fresh[ids][0].line.row for ids in unknown]
            logits = self.backend.append(rows, [0] * len(rows), unknown)  # type: ignore[arg-type]
            self.appended += sum(map(len, unknown))
            for place, ids in enumerate(unknown):
                row = fresh[ids][0].line.row
                assert row is not None
                self.openings.keep(ids, row, logits, place)
        done: list[tuple[Request, Sampled]] = []
        for ids, requests in fresh.items():
            rows = [request.line.row for request in requests]
            done += self._joined(requests, self.openings.load(ids, rows))  # type: ignore[arg-type]
        self.openings.trim()
        return done

    def _joined(self, requests: list[Request], logits: Logits) -> list[tuple[Request, Sampled]]:
        """These have been appended, with these scores, (requests, vocabulary): their turns begin."""
        return self._sampled(self.turns.begin(requests, self.positions), logits)

    # Decoding.

    def _step(self) -> list[tuple[Request, Sampled]]:
        """One token for every turn under way."""
        rows = self.turns.under_way()
        if not len(rows):
            return []
        if (longest := int(self.turns.starts[rows].max()) + 1) > self.rows.tokens:
            self._lengthen(longest)
            rows = self.turns.under_way()
            if not len(rows):
                return []
        logits = self.turns.step(rows)
        self.steps += 1
        self.row_steps += len(rows)
        return self._sampled(rows, logits)

    def _sampled(self, rows: Ints, logits: Logits) -> list[tuple[Request, Sampled]]:
        """Draw the next token of ``rows`` from its scores, (rows, vocabulary); the turns that ended with it."""
        done: list[tuple[Request, Sampled]] = []
        for row, ended in self.turns.draw(rows, logits):
            done.append(self.turns.finish(row, ended))
            self.rows.rest(row)
        return done
