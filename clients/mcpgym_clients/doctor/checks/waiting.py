"""Time: how soon it answers, against the time that clients wait by default, and how long idle connections are kept."""

from __future__ import annotations

import asyncio
import time
from statistics import median

from mcpgym_clients.doctor.context import Context, list_page
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.http_wire import HttpConnection
from mcpgym_clients.doctor.wire import call

FIRST_SECONDS = 5.0
"""The least that a widely used client waits for an answer (openai-agents' default)."""
MOST_SECONDS = 60.0
"""What hosts wait for a tool before they give it up."""
IDLE_SECONDS = 8.0
"""How long a connection is left idle: servers that close after the 5 s that uvicorn has by default do it by then."""
CALLS = 20


async def waiting(context: Context, outcome: Outcome) -> None:
    """The first answer, further ones, a slow one if one was named, and an idle connection."""
    started = time.monotonic()
    place = await context.subject.new_place() if context.has_places else None
    async with context.alone(context.era, place) as client:
        await list_page(client)
        first = time.monotonic() - started
        told = f"a new client has its first list of tools after {first * 1000:,.0f} ms"
        if first > FIRST_SECONDS:
            outcome.warn(told, f"Some clients give up after {FIRST_SECONDS:g} s: start faster, or load later.")
        else:
            outcome.passed(told)
        if context.plan:
            planned = context.plan[0]
            seconds = [
                (await call(client, planned.tool, dict(planned.arguments))).seconds
                for _ in range(5 if context.quick else CALLS)
            ]
            outcome.passed(
                f"{planned.tool}: {len(seconds)} calls, half within {median(seconds) * 1000:.1f} ms, "
                f"all within {max(seconds) * 1000:.1f} ms"
            )
        if context.slow is not None:
            slow = await call(client, context.slow.tool, dict(context.slow.arguments), patience=MOST_SECONDS)
            if slow.answered:
                outcome.passed(f"{context.slow.tool} ends after {slow.seconds:.1f} s: {slow.shown(60)}")
            else:
                outcome.fail(
                    f"{context.slow.tool}: {slow.shown()}",
                    "Bound every call in time and answer that it took too long, so that the model can go on.",
                )
    await context.subject.leave(place)
    if context.subject.transport == "http":
        await _idle(context, outcome)


async def _idle(context: Context, outcome: Outcome) -> None:
    """Whether a connection that was idle for a while is still open."""
    if context.quick:
        outcome.skip(f"idle connections are not waited for ({IDLE_SECONDS:g} s) with --quick")
        return
    async with context.client() as client:
        assert isinstance(client, HttpConnection)
        await list_page(client)
        before = client.open_connections()
        if before == 0:
            outcome.warn("it closes the connection after each answer", "Keep connections: opening them costs most.")
            return
        closed_after = None
        started = time.monotonic()
        while time.monotonic() - started < IDLE_SECONDS:
            await asyncio.sleep(0.1)
            if client.open_connections() < before:
                closed_after = time.monotonic() - started
                break
        if closed_after is not None:
            outcome.warn(
                f"it closes an idle connection after {closed_after:.1f} s",
                "A client that calls at that moment meets a closing connection: keep them for two minutes or more "
                "(uvicorn: timeout_keep_alive).",
            )
        else:
            outcome.passed(f"an idle connection is open after {IDLE_SECONDS:g} s")
