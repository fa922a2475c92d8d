"""Cancellation: clients that leave in mid-call, say that they no longer want an answer, or never finish a request."""

from __future__ import annotations

import asyncio
import contextlib
import time
from urllib.parse import urlsplit

from mcpgym_clients.doctor.calls import PlannedCall
from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.findings import Outcome
from mcpgym_clients.doctor.http_wire import HttpConnection
from mcpgym_clients.doctor.stdio_wire import StdioConnection
from mcpgym_clients.doctor.wire import Connection, Era, call, encode, message

LEAVERS = 20
"""Clients that leave right after they have asked."""
SLOW_SECONDS = 0.2
"""A call that takes longer can be interrupted for certain."""


async def cancellation(context: Context, outcome: Outcome) -> None:
    """Leaving clients, then one that is still there."""
    planned = context.slow or (context.plan[0] if context.plan else None)
    if planned is None:
        outcome.skip("no tool may be called", "Name one: --call TOOL=JSON, or a slow one: --slow TOOL=JSON.")
        return
    for era in context.eras:
        if context.subject.transport == "http":
            await _leavers(context, outcome, planned, era)
        await _cancelled(context, outcome, planned, era)
    if context.subject.transport == "http":
        await _half_requests(context, outcome)
    if context.slow is None:
        outcome.skip(
            "no call is known to be slow, so most were over before they could be interrupted",
            "Name a slow one: --slow TOOL=JSON.",
        )


async def _leavers(context: Context, outcome: Outcome, planned: PlannedCall, era: Era) -> None:
    async with context.client(era) as still_there:
        assert isinstance(still_there, HttpConnection)
        for number in range(LEAVERS):
            leaver = still_there.beside(still_there.session)
            asking = asyncio.create_task(call(leaver, planned.tool, dict(planned.arguments)))
            await asyncio.sleep(0.002 * (number % 5))
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            await leaver.abandon()
        if gone := await context.alive(still_there):
            outcome.fail(
                f"{era}: after {LEAVERS} clients left in mid-call: {gone}",
                "Guard each request: what ends one ends it alone.",
            )
        else:
            outcome.passed(f"{era}: {LEAVERS} clients left in mid-call, and it goes on answering")


async def _cancelled(context: Context, outcome: Outcome, planned: PlannedCall, era: Era) -> None:
    """A notification that the call is no longer wanted; in the modern era over HTTP leaving says so."""
    if era is Era.MODERN and context.subject.transport == "http":
        return
    async with context.client(era) as client:
        started = time.monotonic()
        asking = asyncio.create_task(_ask_as(client, 424242, planned))
        await asyncio.sleep(0.05)
        was_open = not asking.done()
        await client.notify("notifications/cancelled", {"requestId": 424242, "reason": "the doctor changed its mind"})
        if was_open and context.slow is not None:
            await asyncio.wait([asking], timeout=1.0)
            if asking.done():
                seconds = time.monotonic() - started
                outcome.passed(f"{era}: {planned.tool} was cancelled, and over after {seconds:.1f} s")
            else:
                outcome.warn(
                    f"{era}: {planned.tool} runs on for more than 1 s after it was cancelled",
                    "End what nobody waits for; it costs, and changes state unseen.",
                )
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        if gone := await context.alive(client):
            outcome.fail(f"{era}: after notifications/cancelled: {gone}", "A cancellation ends a call, not a session.")
        else:
            outcome.passed(f"{era}: notifications/cancelled is taken, and it goes on answering")


async def _ask_as(client: Connection, number: int, planned: PlannedCall) -> None:
    params = {"name": planned.tool, "arguments": dict(planned.arguments)}
    body = encode(message(client.era, number, "tools/call", params))
    if isinstance(client, HttpConnection):
        await client.post(body, {}, number=number)
    elif isinstance(client, StdioConnection):
        await client.raw(body)


async def _half_requests(context: Context, outcome: Outcome) -> None:
    """A request that ends in the middle of its head, and one in the middle of its body."""
    async with context.client() as client:
        assert isinstance(client, HttpConnection)
        parts = urlsplit(client.url)
        path = parts.path or "/"
        head = f"POST {path} HTTP/1.1\r\nHost: {parts.netloc.rpartition('@')[2]}\r\nContent-Type: application/json\r\n"
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        for rest in ("Content-Le", 'Content-Length: 500\r\n\r\n{"jsonrpc": "2.0", '):
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(5):
                    _, writer = await asyncio.open_connection(parts.hostname, port, ssl=secure or None)
                    writer.write((head + rest).encode())
                    await writer.drain()
                    await asyncio.sleep(0.05)
                    writer.transport.abort()
        if gone := await context.alive(client):
            outcome.fail(f"after two requests that never ended: {gone}", "Guard each connection.")
        else:
            outcome.passed("two requests broke off in their middle, and it goes on answering")
