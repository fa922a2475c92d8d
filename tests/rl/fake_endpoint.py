"""A real HTTP server on loopback that answers chat completions as it was told to, faults included."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web


def completion(
    content: str | None = "", calls: list[Any] | None = None, finish: str = "stop", **extra: Any
) -> dict[str, Any]:
    """The body of a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": content, **extra}
    if calls is not None:
        message["tool_calls"] = calls
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
    }


def call(name: str, arguments: str, call_id: str = "c1") -> dict[str, Any]:
    """One tool call in it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@dataclass
class Fault:
    """An answer that is none: a status with a body, a dropped connection (status 0), a delay before it."""

    status: int
    body: str = ""
    headers: dict[str, str] = field(default_factory=lambda: {"Retry-After": "0.01"})
    delay: float = 0.0


@dataclass
class FakeEndpoint:
    """What it will answer, in order (the last one for ever), and what it was asked."""

    answers: list[Any]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""
    busy: int = 0
    most_busy: int = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """One chat completion."""
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        place = min(len(self.requests), len(self.answers)) - 1
        wanted = self.answers[place]
        if isinstance(wanted, Callable):  # type: ignore[arg-type]
            wanted = wanted(body)
        self.busy += 1
        self.most_busy = max(self.busy, self.most_busy)
        try:
            if not isinstance(wanted, Fault):
                await asyncio.sleep(0.001)
                return web.json_response(wanted)
            await asyncio.sleep(wanted.delay)
            if wanted.status == 0:
                assert request.transport is not None
                request.transport.close()
            return web.Response(
                status=wanted.status or 200, text=wanted.body, headers=wanted.headers, content_type="application/json"
            )
        finally:
            self.busy -= 1


@contextlib.asynccontextmanager
async def endpoint(*answers: Any) -> AsyncIterator[FakeEndpoint]:
    """Such a server, at work."""
    fake = FakeEndpoint(list(answers))
    app = web.Application()
    app.router.add_post("/v1/chat/completions", fake.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield fake
    finally:
        await runner.cleanup()


def error_body(message: str, code: str | None = None) -> str:
    """An error as such servers word it."""
    return json.dumps({"error": {"message": message, "type": "x", "code": code}})
