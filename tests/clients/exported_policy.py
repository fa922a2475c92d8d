"""A player of tic-tac-toe as a chat-completions API on loopback: what it plays follows from what it has read alone.

So it plays alike whoever asks it, and a rollout that read another's answers would play otherwise. It makes mistakes on
purpose: moves on taken cells, turns without a thought, two calls at once, arguments that are no JSON.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

FREE = re.compile(r"free (\d(?: \d)*)")


CAREFUL = "careful"
"""The model that writes no broken JSON: Inspect reads that in a way of its own."""


def answer(messages: Sequence[Mapping[str, Any]], tool: str = "play", *, careful: bool = False) -> dict[str, Any]:
    """The next assistant message."""
    read = [text(one["content"]) for one in messages if one["role"] in ("user", "tool")]
    read = [one.removeprefix("Error:").strip() for one in read]  # as Inspect writes before what is an error
    turn = sum(one["role"] == "assistant" for one in messages)
    drawn = zlib.crc32("\n".join(read).encode())
    thought = "" if drawn % 7 == 0 else "<think>Here it may go well.</think>"
    if "Game over" in read[-1] or drawn % 41 == 0:
        return {"role": "assistant", "content": f"{thought}I am done."}
    free = [int(cell) for cell in FREE.findall(read[-1])[-1].split()] if FREE.search(read[-1]) else []
    cells = [drawn % 9 if not free or drawn % 11 == 0 else free[drawn % len(free)]]
    if len(free) > 5 and drawn % 5 == 0:
        cells.append(free[(drawn // 5) % len(free)])
    written = ['{"position": ' if drawn % 29 == 0 and not careful else json.dumps({"position": cell}) for cell in cells]
    calls = [
        {"id": f"call_{turn}_{place}", "type": "function", "function": {"name": tool, "arguments": arguments}}
        for place, arguments in enumerate(written)
    ]
    return {"role": "assistant", "content": thought, "tool_calls": calls}


def words(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The next assistant message where there is nothing to call: an answer that is sometimes right, and never alike."""
    asked = "\n".join(text(one["content"]) for one in messages if one["role"] == "user")
    sums = re.findall(r"What is ([\d *+-]+)\?", asked)
    drawn = zlib.crc32(asked.encode())
    right = eval(sums[0]) if sums else 0  # digits and signs alone
    return {"role": "assistant", "content": f"<answer>{right if drawn % 3 else drawn % 100}</answer>"}


def text(content: Any) -> str:
    """The text of a message's content."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or [])


@asynccontextmanager
async def policy_served() -> AsyncIterator[str]:
    """The player at work; a base URL for OpenAI clients."""

    async def complete(request: web.Request) -> web.Response:
        asked = await request.json()
        names = [tool["function"]["name"] for tool in asked.get("tools", [])]
        message = words(asked["messages"])
        if names:
            message = answer(asked["messages"], names[0], careful=asked["model"] == CAREFUL)
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        made = {"id": "c", "object": "chat.completion", "created": 1, "model": asked["model"]}
        return web.json_response({**made, "choices": [choice], "usage": usage})

    application = web.Application(client_max_size=64 * 2**20)
    application.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()
