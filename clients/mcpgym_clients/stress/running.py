"""``mcpgym stress``: load in turns, the server's, the bare endpoint's, and whole episodes, for a given time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mcpgym.stopping import Stopping
from mcpgym_clients.console import out, talk
from mcpgym_clients.doctor.calls import Permission, parse_calls
from mcpgym_clients.doctor.context import list_tools
from mcpgym_clients.doctor.processes import held
from mcpgym_clients.doctor.running import headers_of, is_environment, is_url
from mcpgym_clients.doctor.subjects import HttpSubject, checked_url, served
from mcpgym_clients.doctor.wire import Era, call
from mcpgym_clients.failures import FAILURE, CommandFailed, UsageProblem
from mcpgym_clients.stress.figures import Figures, render
from mcpgym_clients.stress.load import NoAnswer, Pipe, Tally, timed
from mcpgym_clients.stress.working import EpisodeWork, Opened, SessionWork, Work

STRETCH_SECONDS = 0.4
"""About how long one stretch of load takes before it is the other's turn."""
WARM_SECONDS = 0.4
MOST_AHEAD = 200
"""Episodes that each connection has open when a stretch begins, at most."""


@dataclass(frozen=True, slots=True)
class StressOptions:
    """What was typed."""

    subject: str
    episodes: int | None = None
    concurrency: int = 32
    seconds: float = 10.0
    calls: Sequence[str] = ()
    headers: Sequence[str] = ()
    config: Sequence[str] = ()
    json: Path | None = None


def run(options: StressOptions) -> int:
    """Load it, print and write; 0, or 1 if anything went wrong under load.

    Raises:
        UsageProblem: what was named is neither a URL nor an environment, or options do not fit it.
        CommandFailed: it cannot be reached.
    """
    if not is_url(options.subject) and not is_environment([options.subject]):
        raise UsageProblem(f"{options.subject} is no URL (http://…) and no installed environment (see mcpgym list)")
    if is_url(options.subject) and options.config:
        raise UsageProblem("--config belongs to an environment, and none is named")
    if not is_url(options.subject) and (options.calls or options.headers):
        raise UsageProblem("--call and --header belong to a URL; an environment's calls are made from its schemas")
    parse_calls(options.calls)
    headers_of(options.headers)
    if options.json is not None and not options.json.absolute().parent.is_dir():
        raise UsageProblem(f"{options.json}: there is no folder {options.json.parent}")
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    made: list[Figures] = []

    async def work(stopping: Stopping) -> None:
        loading = asyncio.ensure_future(loaded(options))
        stopped = asyncio.ensure_future(stopping.wait())
        await asyncio.wait({loading, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not loading.done():
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
            return
        made.append(loading.result())

    code = Stopping().run(work)
    if not made:
        return code or FAILURE
    figures = made[0]
    render(out(), figures)
    if options.json is not None:
        options.json.write_text(json.dumps(figures.as_json(), indent=2) + "\n", encoding="utf-8")
    return FAILURE if figures.errors else 0


async def loaded(options: StressOptions) -> Figures:
    """The figures of a run."""
    with talk().status("starting …") as status:
        async with _work(options) as (work, found, name), _bare() as (bare_url, bare_pid):
            figures = Figures(name, work.unit, options.concurrency)
            pid = found if isinstance(found, int) else None
            figures.why = found if isinstance(found, str) else ""
            load = _Load(work, bare_url, options.concurrency)
            try:
                await load.prepare()
                status.update(f"loading for {options.seconds:g} s …")
                figures.before = None if pid is None else held(pid)
                if pid is not None and figures.before is None:
                    figures.why, pid = "this user may not look into the server's process", None
                await _turns(load, figures, pid, bare_pid, options)
                await asyncio.sleep(0.3)
                figures.after = None if pid is None else held(pid)
            finally:
                await load.end()
    return figures


async def _turns(load: _Load, figures: Figures, pid: int | None, bare_pid: int, options: StressOptions) -> None:
    until = time.monotonic() + options.seconds
    left = options.episodes
    while time.monotonic() < until and left != 0:
        opened = await load.open_ahead()
        calls = await _measured(pid, partial(load.play, opened))
        bare = await _measured(bare_pid, partial(load.play_bare, calls.wall))
        await load.close_all(opened)
        whole = await _measured(pid, partial(load.whole, STRETCH_SECONDS, left))
        figures.calls.append(calls)
        figures.bare.append(bare)
        figures.whole.append(whole)
        left = None if left is None else max(0, left - whole.episodes)
    figures.own_cpu = load.own_cpu


async def _measured(pid: int | None, stretch: Callable[[Tally], Awaitable[None]]) -> Tally:
    """Run a stretch, and read what the server's processes spent on it."""
    tally = Tally()
    before = None if pid is None else held(pid)
    started = time.monotonic()
    await stretch(tally)
    tally.wall = time.monotonic() - started
    after = None if pid is None else held(pid)
    tally.cpu = None if before is None or after is None else after.cpu - before.cpu
    return tally


class _Load:
    """The connections, and the three kinds of stretches that take turns over them."""

    def __init__(self, work: Work, bare_url: str, concurrency: int) -> None:
        self._work = work
        self._pipes: list[Pipe] = []
        self._bare_pipes = [Pipe(bare_url) for _ in range(concurrency)]
        self._bare_request = work.sample(bare_url)
        self._concurrency = concurrency
        self._ahead = 1
        self._own = 0.0
        self._made = 0

    @property
    def own_cpu(self) -> float:
        """CPU microseconds of this process for one call."""
        return self._own / self._made * 1e6 if self._made else 0.0

    async def prepare(self) -> None:
        """Open the connections and warm both servers up.

        Raises:
            CommandFailed: nothing can be opened.
        """
        self._pipes = [self._work.pipe() for _ in range(self._concurrency)]
        try:
            opened = await self.open_ahead()
        except NoAnswer as error:
            raise CommandFailed(f"no {self._work.unit} can be opened: {error}") from None
        await self.play(opened, Tally())
        await self.close_all(opened)
        await self.play_bare(WARM_SECONDS, Tally())
        self._own, self._made = 0.0, 0

    async def open_ahead(self) -> list[list[Opened]]:
        """Some episodes for each connection, opened outside of what is measured."""

        async def some(pipe: Pipe) -> list[Opened]:
            return [await self._work.open(pipe) for _ in range(self._ahead)]

        return list(await asyncio.gather(*(some(pipe) for pipe in self._pipes)))

    async def play(self, queues: list[list[Opened]], tally: Tally) -> None:
        """Only their calls; how many are opened next time follows from how long it took."""
        own, started, before = time.process_time(), time.monotonic(), tally.calls

        async def through(queue: list[Opened]) -> None:
            for opened in queue:
                await opened.play(tally)

        await asyncio.gather(*(through(queue) for queue in queues))
        self._own += time.process_time() - own
        self._made += tally.calls - before
        wanted = self._ahead * STRETCH_SECONDS / max(time.monotonic() - started, 1e-3)
        self._ahead = max(1, min(MOST_AHEAD, round(wanted)))

    async def close_all(self, queues: list[list[Opened]]) -> None:
        """Close what was opened ahead."""

        async def through(queue: list[Opened]) -> None:
            for opened in queue:
                with contextlib.suppress(NoAnswer):
                    await opened.close()

        await asyncio.gather(*(through(queue) for queue in queues))

    async def play_bare(self, seconds: float, tally: Tally) -> None:
        """The same request to the bare endpoint, over as many connections."""
        until = time.monotonic() + seconds

        async def through(pipe: Pipe) -> None:
            while time.monotonic() < until:
                await timed(pipe, self._bare_request, tally)

        await asyncio.gather(*(through(pipe) for pipe in self._bare_pipes))

    async def whole(self, seconds: float, most: int | None, tally: Tally) -> None:
        """Whole episodes: opened, played and closed under load."""
        until = time.monotonic() + seconds
        begun = 0

        async def through(pipe: Pipe) -> None:
            nonlocal begun
            while time.monotonic() < until and (most is None or begun < most):
                begun += 1
                try:
                    opened = await self._work.open(pipe)
                    await opened.play(tally)
                    await opened.close()
                    tally.episodes += 1
                except NoAnswer as error:
                    tally.failed(str(error))

        await asyncio.gather(*(through(pipe) for pipe in self._pipes))

    async def end(self) -> None:
        """Disconnect."""
        for pipe in (*self._pipes, *self._bare_pipes):
            pipe.close()


@contextlib.asynccontextmanager
async def _work(options: StressOptions) -> AsyncIterator[tuple[Work, int | str, str]]:
    if is_url(options.subject):
        url = checked_url(options.subject)
        subject = HttpSubject(url, headers_of(options.headers), 10.0)
        for era in (Era.MODERN, Era.HANDSHAKE):
            connection = await subject.connect(era)
            try:
                tools, last = await list_tools(connection)
                if last.result is None:
                    continue
                plan = Permission(parse_calls(options.calls)).plan(tools)
                if not plan:
                    raise UsageProblem("it has no tool that may be called unasked: name calls with --call TOOL=JSON")
                answer = await call(connection, plan[0].tool, dict(plan[0].arguments))
                if not answer.answered:
                    raise CommandFailed(f"{url}: {plan[0].tool}: {answer.shown()}")
            finally:
                await connection.close()
            yield SessionWork(url, era, plan, subject.headers), subject.process(), subject.described
            return
        raise CommandFailed(f"no MCP client can connect to {url}: {connection.opening.shown()}")
    async with served(options.subject, options.config) as server:
        url, token = await server.open()
        connection = await HttpSubject(url, {}, 10.0).connect(Era.MODERN)
        listed, _ = await list_tools(connection)
        await connection.close()
        await server.close(token)
        if not listed:
            raise UsageProblem(f"{options.subject} has no tools, so there are no calls to make")
        yield EpisodeWork(server, options.subject, url, listed), server.pid, f"{options.subject}, served by mcpgym"


@contextlib.asynccontextmanager
async def _bare() -> AsyncIterator[tuple[str, int]]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mcpgym_clients.stress.bare",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line: Any = await asyncio.wait_for(process.stdout.readline(), 60)
        if not line:
            raise CommandFailed("the bare endpoint, the measure of the others, did not start")
        yield line.decode().strip(), process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
