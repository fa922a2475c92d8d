"""The Messages API on loopback, with a function for a model: what lets the real Claude Code run without a network."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

Block = Mapping[str, Any]
Brain = Callable[[Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]], Sequence[Block]]
"""From the messages so far and the tools on offer, the blocks of the next answer."""


def says(text: str) -> Block:
    """A block of text."""
    return {"type": "text", "text": text}


def calls(name: str, arguments: Mapping[str, Any], number: int) -> Block:
    """A block that calls a tool; ``number`` tells the calls of a conversation apart."""
    return {"type": "tool_use", "id": f"toolu_{number:08}", "name": name, "input": dict(arguments)}


def results(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The texts of all tool results so far, in order."""
    found = []
    for message in messages:
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            if block.get("type") == "tool_result":
                content = block["content"]
                texts = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
                found.append(texts)
    return found


class FakeMessagesAPI:
    """Serves ``brain`` on a free port of loopback, and keeps every request that carries tools.

    Use it as an asynchronous context manager; ``address`` is for ``ANTHROPIC_BASE_URL``.
    """

    def __init__(self, brain: Brain) -> None:
        self.brain = brain
        self.requests: list[dict[str, Any]] = []
        self.address = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> FakeMessagesAPI:
        application = web.Application(client_max_size=64 * 2**20)
        application.router.add_post("/v1/messages", self._answer)
        application.router.add_post("/v1/messages/count_tokens", _count)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        tools = asked.get("tools", [])
        if tools:
            self.requests.append(asked)
        try:
            blocks = list(self.brain(asked["messages"], tools)) if tools else [says("ok")]
        except Exception as error:  # told in the client's own answer, which would try again and again otherwise
            blocks = [says(f"the model failed: {error!r}")]
        stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
        message = {
            "id": "msg_fake",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if not asked.get("stream"):
            return web.json_response({**message, "content": blocks, "stop_reason": stop})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for name, event in _events({**message, "content": [], "stop_reason": None}, blocks, stop):
            await response.write(f"event: {name}\ndata: {json.dumps({'type': name, **event})}\n\n".encode())
        return response


def _events(message: Mapping[str, Any], blocks: Sequence[Block], stop: str) -> list[tuple[str, dict[str, Any]]]:
    """A message as the API streams it."""
    events: list[tuple[str, dict[str, Any]]] = [("message_start", {"message": message})]
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            ("content_block_start", {"index": index, "content_block": empty}),
            ("content_block_delta", {"index": index, "delta": delta}),
            ("content_block_stop", {"index": index}),
        ]
    end = {"stop_reason": stop, "stop_sequence": None}
    return [*events, ("message_delta", {"delta": end, "usage": {"output_tokens": 1}}), ("message_stop", {})]


async def _count(request: web.Request) -> web.Response:
    return web.json_response({"input_tokens": len(await request.text()) // 4})
