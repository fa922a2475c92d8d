"""Continuous batching: many conversations share the rows of one backend, and whoever has something to say decodes.

A :class:`Line` is one conversation: its ids, and the row that holds the keys and values of its first tokens, if it has
one. :meth:`Line.generate` appends a chunk and samples a turn. One task serves all lines, step by step: those that
finished leave, those that came in are appended together and join, and every step decodes all that are under way.

Rows are finite, lines are not. A line keeps its row between its turns, so that each turn appends only what is new;
when others wait, the row whose line has rested longest is taken from it, and filled anew when that line comes back.

The task runs on the event loop and lets everyone speak before each step, in a fixed manner: with an in-process
environment the same run makes the same batches, to the last bit. Large models compute in a thread instead.
"""

from __future__ import annotations

import asyncio
import heapq
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mcpgym_rl.local.backend import Backend
from mcpgym_rl.local.line import Line, Request, Sampled
from mcpgym_rl.local.sampling import uniforms
from mcpgym_rl.policy import PolicyError

T = TypeVar("T")

PATIENCE = 24
"""Turns of the event loop for which lines that are about to speak are waited for before a step."""
OPENINGS = 256
"""How many prompts are kept computed: episodes begin with the same few."""
OPENING_BYTES = 64 << 20
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
        self._most, self._cache_bytes = rows, cache_bytes
        self._ends = np.zeros(backend.vocabulary, bool)
        self._ends[[token for token in end_ids if token < backend.vocabulary]] = True
        self._asking: dict[Request, None] = {}
        self._waiting: list[Request] = []
        self._running: dict[int, Request] = {}
        self._owners: dict[int, Line] = {}
        self._resting: OrderedDict[int, None] = OrderedDict()
        self._free: list[int] = []
        self._rows = self._tokens = 0
        self._openings: OrderedDict[tuple[int, ...], tuple[Any, Any]] = OrderedDict()
        self._opening_bytes = 0
        self._asked = 0
        self._busy = False
        self._later: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._last = np.zeros(0, np.int64)
        self._starts = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._limits = np.zeros(0, np.int64)
        self._seeds = np.zeros(0, np.uint64)
        self._heats = np.zeros(0, np.float64)
        self._min_p = np.zeros(0, np.float64)
        self._active = np.zeros(0, bool)
        self._said = np.zeros((0, 0), np.int64)
        self._logprobs = np.zeros((0, 0), np.float32)
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
        if line.row is not None:
            self._bequeath(line)
        if line.row is not None:
            self._evict(line.row)

    def _bequeath(self, line: Line) -> None:
        """The first copy that has no row yet gets the row of ``line``; the others now copy that one."""
        heirs = [copy for copy in line._copies if copy._source is not None and copy._source[0] is line]
        line._copies.clear()
        if not heirs or line.row is None:
            return
        first, row = heirs[0], line.row
        assert first._source is not None
        first.row, first.cached = row, min(first._source[1], line.cached)
        first._source = None
        line.row, line.cached = None, 0
        self._owners[row] = first
        for heir in heirs[1:]:
            assert heir._source is not None
            heir._source = (first, min(heir._source[1], first.cached))
        first._copies += heirs[1:]

    def refresh(self) -> None:
        """Take live weights as they are now, and drop what was computed with others."""
        if self.backend.refresh():
            self.forget()

    def forget(self) -> None:
        """Drop everything computed."""
        for row in list(self._owners):
            if row not in self._running:
                self._evict(row)
        self._openings.clear()
        self._opening_bytes = 0

    async def aclose(self) -> None:
        """Stop; turns under way are cancelled."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        self._task = None

    # The work.

    async def _work(self) -> None:
        try:
            while self._waiting or self._running:
                await self._listen()
                if self._waiting:
                    await self._do(self._admit)
                if self._running:
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
        for row in list(self._running):
            self._stop(row)
        self.forget()

    def _abandon(self, request: Request) -> None:
        """Nobody waits for this turn any more."""
        if self._busy:
            self._later.append(lambda: self._abandon(request))
        elif request in self._waiting:
            self._waiting.remove(request)
        elif request.line.row is not None and self._running.get(request.line.row) is request:
            self._stop(request.line.row)

    # Rows.

    def _evict(self, row: int) -> None:
        """Take a row from its line."""
        if row in self._running:
            self._stop(row)
        line = self._owners.pop(row)
        line.row, line.cached = None, 0
        self._resting.pop(row, None)
        heapq.heappush(self._free, row)

    def _stop(self, row: int) -> None:
        """The turn under way in a row is over."""
        del self._running[row]
        self._active[row] = False
        self._resting[row] = None

    def _row_for(self, line: Line) -> bool:
        """Give ``line`` a row; whether there was one."""
        if line.row is not None:
            return True
        if not self._free and self._rows < (allowed := self._allowed(self._tokens)):
            self._grow(min(max(8, self._rows + self._rows // 2), allowed), self._tokens)
        if not self._free:
            if not self._resting:
                return False
            self._evict(next(iter(self._resting)))
        row = heapq.heappop(self._free)
        line.row, line.cached = row, 0
        self._owners[row] = line
        return True

    def _allowed(self, tokens: int) -> int:
        """How many rows of ``tokens`` tokens there may be."""
        return max(1, min(self._most, self._cache_bytes // max(1, self.backend.row_bytes(max(tokens, 1)))))

    def _lengthen(self, needed: int) -> None:
        """Make rows that take ``needed`` tokens. Where that makes them too many, some turns must wait for another."""
        if needed <= self._tokens:
            return
        tokens = max(needed, min(self._tokens + self._tokens // 4, self.positions))
        if self._rows > self._allowed(tokens):
            tokens = needed
        allowed = self._allowed(tokens)
        for row in range(allowed, self._rows):
            if (request := self._running.get(row)) is not None:
                self._interrupt(row, request)
            if row in self._owners:
                self._evict(row)
        self._free = [row for row in self._free if row < allowed]
        heapq.heapify(self._free)
        self._grow(min(self._rows, allowed), tokens)

    def _interrupt(self, row: int, request: Request) -> None:
        """Take a row from a turn under way; it goes on, from the token it had come to, when there is a row again."""
        ids, logprobs = self._spoken(row)
        request.line.ids.extend(ids)
        request.ids += ids
        request.logprobs += logprobs
        request.limit -= len(ids)
        self._stop(row)
        self._waiting.append(request)

    def _spoken(self, row: int) -> tuple[list[int], list[float]]:
        """What the turn under way in a row has sampled."""
        count = int(self._counts[row])
        return self._said[row, :count].tolist(), self._logprobs[row, :count].tolist()

    def _grow(self, rows: int, tokens: int) -> None:
        self.backend.reserve(rows, tokens)
        for row in range(self._rows, rows):
            heapq.heappush(self._free, row)
        more = rows - len(self._last)
        if more > 0:
            for name in ("_last", "_starts", "_counts", "_limits", "_seeds", "_heats", "_min_p", "_active"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros(more, old.dtype)]))
        self._rows, self._tokens = rows, tokens
        self._widen(self._said.shape[1])

    def _widen(self, width: int) -> None:
        """Room for turns of ``width`` tokens."""
        for name in ("_said", "_logprobs"):
            old: NDArray[Any] = getattr(self, name)
            shape = max(self._rows, old.shape[0]), max(width, old.shape[1])
            if shape == old.shape:
                continue
            new = np.zeros(shape, old.dtype)
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, name, new)

    # Appending.

    def _admit(self) -> list[tuple[Request, Sampled]]:
        """Give rows to those who wait, append what is new of each, and sample the first token of each turn."""
        waiting = [request for request in self._waiting if not request.future.done()]
        if not waiting:
            return []
        self._lengthen(max(min(len(one.line.ids) + min(one.limit, _SLACK), self.positions) for one in waiting))
        for request in waiting:
            if request.line.row is not None:
                self._resting.pop(request.line.row, None)
        admitted = [request for request in waiting if self._row_for(request.line)]
        taken = set(admitted)
        self._waiting = [request for request in self._waiting if request not in taken and not request.future.done()]
        done: list[tuple[Request, Sampled]] = []
        fresh: dict[tuple[int, ...], list[Request]] = {}
        going: list[Request] = []
        for request in admitted:
            self._inherit(request.line)
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

    def _inherit(self, line: Line) -> None:
        """Copy what a fork's original still has in its row."""
        if line.cached or line._source is None:
            return
        source, tokens = line._source
        line._source = None
        tokens = min(tokens, source.cached, len(line.ids) - 1)
        if source.row is not None and tokens > 0 and line.row is not None:
            self.backend.copy(source.row, line.row, tokens)
            line.cached = tokens

    def _begin(self, fresh: dict[tuple[int, ...], list[Request]]) -> list[tuple[Request, Sampled]]:
        """Lines of which nothing is in the cache: each different one is computed once."""
        unknown = [ids for ids in fresh if ids not in self._openings]
        if unknown:
            rows = [fresh[ids][0].line.row for ids in unknown]
            logits = self.backend.append(rows, [0] * len(rows), unknown)  # type: ignore[arg-type]
            self.appended += sum(map(len, unknown))
            for place, ids in enumerate(unknown):
                row = fresh[ids][0].line.row
                assert row is not None
                self._keep(ids, (self.backend.save(row, len(ids)), self.backend.take(logits, [place])))
        done: list[tuple[Request, Sampled]] = []
        for ids, requests in fresh.items():
            saved, logits = self._openings[ids]
            self._openings.move_to_end(ids)
            for request in requests:
                assert request.line.row is not None
                self.backend.load(request.line.row, saved)
            done += self._joined(requests, self.backend.take(logits, [0] * len(requests)))
        self._trim()
        return done

    def _keep(self, ids: tuple[int, ...], computed: tuple[Any, Any]) -> None:
        self._openings[ids] = computed
        self._opening_bytes += self.backend.row_bytes(len(ids))

    def _trim(self) -> None:
        while len(self._openings) > OPENINGS or (self._opening_bytes > OPENING_BYTES and self._openings):
            ids, _ = self._openings.popitem(last=False)
            self._opening_bytes -= self.backend.row_bytes(len(ids))

    def _joined(self, requests: list[Request], logits: Any) -> list[tuple[Request, Sampled]]:
        """These have been appended: their turns begin."""
        self._widen(max(self._said.shape[1], max(min(request.limit, 64) for request in requests)))
        rows = np.array([request.line.row for request in requests])
        for request, row in zip(requests, rows.tolist(), strict=True):
            line = request.line
            line.cached = len(line.ids)
            self._running[row] = request
            self._starts[row] = len(line.ids)
            self._counts[row] = 0
            self._limits[row] = min(request.limit, self.positions - len(line.ids))
            self._seeds[row] = line.seed
            self._heats[row] = request.temperature
            self._min_p[row] = request.min_p
            self._active[row] = True
        return self._sampled(rows, logits)

    # Decoding.

    def _step(self) -> list[tuple[Request, Sampled]]:
        """One token for every turn under way."""
        rows = np.flatnonzero(self._active)
        if not len(rows):
            return []
        if (longest := int(self._starts[rows].max()) + 1) > self._tokens:
            self._lengthen(longest)
            rows = np.flatnonzero(self._active)
            if not len(rows):
                return []
        starts = self._starts[rows]
        logits = self.backend.step(rows, self._last[rows], starts)
        self._starts[rows] += 1
        self.steps += 1
        self.row_steps += len(rows)
        return self._sampled(rows, logits)

    def _sampled(self, rows: NDArray[np.int64], logits: Any) -> list[tuple[Request, Sampled]]:
        """Draw the next token of ``rows``; the turns that ended with it."""
        counts = self._counts[rows]
        if int(counts.max()) >= self._said.shape[1]:
            self._widen(2 * self._said.shape[1])
        numbers = uniforms(self._seeds[rows], self._starts[rows])
        tokens, logprobs = self.backend.choose(logits, self._heats[rows], float(self._min_p[rows].max()), numbers)
        self._said[rows, counts] = tokens
        self._logprobs[rows, counts] = logprobs
        self._last[rows] = tokens
        counts += 1
        self._counts[rows] = counts
        ended = self._ends[tokens]
        over = np.flatnonzero(ended | (counts >= self._limits[rows]))
        return [self._finished(int(rows[place]), bool(ended[place])) for place in over.tolist()]

    def _finished(self, row: int, ended: bool) -> tuple[Request, Sampled]:
        request = self._running[row]
        line = request.line
        ids, logprobs = self._spoken(row)
        line.cached = int(self._starts[row])
        line.ids.extend(ids)
        assert line.cached == len(line.ids) - 1, "the cache holds all but the last token, which comes with what follows"
        self._stop(row)
        return request, Sampled(request.ids + ids, request.logprobs + logprobs, "stop" if ended else "length")
