"""Leaks: what the server's processes hold after many sessions that ended well, and after many that were abandoned."""

from __future__ import annotations

import asyncio
from statistics import linear_regression

from mcpgym_clients.doctor.context import Context, list_page
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.processes import Held, alive, descendants, held
from mcpgym_clients.doctor.stdio_wire import StdioConnection
from mcpgym_clients.doctor.wire import Connection, Era, call

AT_ONCE = 8
PARTS = 4
"""How often a phase is measured."""
MEMORY = 16 * 1024
"""Bytes a session may leave on average: less than any session's own objects, more than what an allocator does."""
LEAST = 100
"""Sessions below which memory says nothing."""
SETTLE_SECONDS = 0.5
PROCESSES = 10
CALLS = 1000


async def leaks(context: Context, outcome: Outcome) -> None:
    """Over HTTP sessions of one server; with stdio, processes one after the other, and many calls in one."""
    if context.subject.transport == "stdio":
        await _processes(context, outcome)
        return
    pid = context.subject.process()
    if isinstance(pid, str):
        outcome.skip(
            f"memory and files cannot be measured: {pid}", "Run the doctor where the server runs, as its user."
        )
    elif held(pid) is None:
        outcome.skip("memory and files cannot be measured: this user may not look into the server's process")
        pid = "unseen"
    era = Era.HANDSHAKE if Era.HANDSHAKE in context.eras else context.era
    await _sessions(context, min(50, context.sessions), era, well=True)  # what is made once is made now
    for well in (True, False):
        await _phase(context, outcome, pid if isinstance(pid, int) else None, era, well)


async def _phase(context: Context, outcome: Outcome, pid: int | None, era: Era, well: bool) -> None:
    """Half of the sessions, all ended in one way."""
    count = max(1, context.sessions // 2 // PARTS) * PARTS
    measured = [held(pid)] if pid is not None else []
    failed: list[str] = []
    for _ in range(PARTS):
        failed += await _sessions(context, count // PARTS, era, well)
        if pid is not None:
            await asyncio.sleep(SETTLE_SECONDS / (10 if context.quick else 1))
            measured.append(held(pid))
    ended = "closed" if well else "abandoned"
    told = f"{count} sessions ({era}) opened, used and {ended}"
    if failed:
        outcome.fail(f"{told}: {len(failed)} failed: {failed[0]}", "Sessions must not use up the server.")
    elif pid is None:
        outcome.passed(f"{told}: every one was answered")
    known = [each for each in measured if each is not None]
    if len(known) > PARTS:
        _judge(outcome, told, count, known, well)
    elif pid is not None and len(known) < len(measured):
        outcome.fail(f"{told}: then its process {pid} was gone", "Sessions must not end the server.")


def _judge(outcome: Outcome, told: str, count: int, measured: list[Held], well: bool) -> None:
    throughout = set.intersection(*(set(each.shares) for each in measured))
    # What a process that ends gives back must not hide what another holds on to.
    staying = [each.of(throughout) for each in measured]
    change = _change(measured, staying)
    found = False
    for name in ("descriptors", "threads", "children"):
        counts = [(getattr(one[1], name), getattr(one[-1], name)) for one in (measured, staying)]
        if any(after - before > max(8, count // 20) for before, after in counts):
            found = True
            advice = f"Release its {name} when a session ends, however it ends."
            (outcome.fail if well else outcome.warn)(f"{told}: {name} grow: {change}", advice)
    slope = max(_slope(measured, count), _slope(staying, count))
    if count >= LEAST and slope > MEMORY:
        found = True
        told_slope = f"{told}: {slope / 1024:.0f} KiB stay for each: {change}"
        if well:
            outcome.fail(told_slope, "Something holds on to sessions that were closed: look for a dict keyed on them.")
        else:
            outcome.warn(
                told_slope,
                "Clients die without a word: let idle sessions expire, and cap how many there are. (If they do expire, "
                "only later, this is as it should be.)",
            )
    if not found:
        kept = f"{max(slope, 0) / 1024:.1f} KiB for each" if count >= LEAST else "too few to tell of memory"
        outcome.passed(f"{told}: {change}; {kept}")


def _slope(measured: list[Held], count: int) -> float:
    """Bytes that stay for each of ``count`` sessions.

    The first part may still fill caches and pools; what grows on after it, leaks.
    """
    ended = [part * count / PARTS for part in range(PARTS)]
    return linear_regression(ended, [each.memory for each in measured[1:]]).slope


def _change(measured: list[Held], staying: list[Held]) -> str:
    first, last = measured[0], measured[-1]
    change = (
        f"{_memory_and_files(measured)}, {first.threads} → {last.threads} threads, "
        f"{first.children} → {last.children} children"
    )
    if staying == measured:
        return change
    count = len(staying[0].shares)
    return f"{change}; of which, in the {count} processes that ran all the time, {_memory_and_files(staying)}"


def _memory_and_files(measured: list[Held]) -> str:
    first, last = measured[0], measured[-1]
    memory = f"{first.memory / 2**20:.1f} → {last.memory / 2**20:.1f} MiB"
    return f"{memory}, {first.descriptors} → {last.descriptors} descriptors"


async def _sessions(context: Context, count: int, era: Era, well: bool) -> list[str]:
    """Open, use and end sessions, a few at once; what went wrong, in words."""
    failed: list[str] = []
    numbers = iter(range(count))

    async def worker() -> None:
        for _ in numbers:
            place = await context.subject.new_place() if context.has_places else None
            client = await context.subject.connect(era, place=place)
            if problem := await _use(client, context):
                failed.append(problem)
            if well:
                await client.close()
                await context.subject.leave(place)
            else:
                await client.abandon()

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    return failed


async def _use(client: Connection, context: Context) -> str:
    listed = await list_page(client)
    if listed.result is None:
        return listed.shown()
    if context.plan:
        planned = context.plan[0]
        answer = await call(client, planned.tool, dict(planned.arguments))
        return "" if answer.answered else answer.shown()
    return ""


async def _processes(context: Context, outcome: Outcome) -> None:
    left: set[int] = set()
    failed: list[str] = []
    count = 1 if context.quick else min(context.sessions, PROCESSES)
    for _ in range(count):
        client = await context.subject.connect(context.era)
        assert isinstance(client, StdioConnection)
        if problem := await _use(client, context):
            failed.append(problem)
        family = set(descendants(client.process.pid)) if client.process is not None else set()
        client.close_input()
        if not await client.ended(5.0):
            await client.close()
            continue  # the check of shutdown says so
        await asyncio.sleep(0.1)
        left |= {pid for pid in family if alive(pid)}
        await client.abandon()
    if failed:
        outcome.fail(f"{len(failed)} of {count} processes did not answer: {failed[0]}", "Each client starts one.")
    if left:
        outcome.fail(
            f"{len(left)} child processes outlive the {count} servers that started them",
            "End them when standard input closes.",
        )
    if not failed and not left:
        outcome.passed(f"processes, one after the other ({count}): each answered, and left no child")
    await _calls(context, outcome)


async def _calls(context: Context, outcome: Outcome) -> None:
    """Many calls in one process."""
    calls = max(LEAST, min(context.sessions, CALLS))
    async with context.alone(context.era) as client:
        assert isinstance(client, StdioConnection)
        assert client.process is not None
        measured: list[Held | None] = []
        for part in range(PARTS + 2):
            for _ in range(calls // (PARTS + 1)):
                if problem := await _use(client, context):
                    outcome.fail(
                        f"in a session of {calls} calls: {problem}", "A long session must be as good as a short."
                    )
                    return
            if part:  # the first fills what is filled once
                measured.append(held(client.process.pid))
    known = [each for each in measured if each is not None]
    if len(known) > PARTS:
        _judge(outcome, f"{calls} calls in one process", calls, known, well=True)
    else:
        outcome.skip("memory cannot be measured: this user may not look into the process")
