"""The OpenAI Responses and the Gemini API on loopback, with a player of tic-tac-toe for a model: for agents' CLIs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

THOUGHT = "<think>The first free cell will do.</think>"


def next_move(answers: Sequence[str]) -> int | None:
    """The first cell that the last answer calls free; None when the game is over."""
    if answers and "Game over" in answers[-1]:
        return None
    free = re.findall(r"free ([0-8])", answers[-1] if answers else "")
    return int(free[0]) if free else 4


class FakeEndpoints:
    """Serves both APIs on a free port; keeps every request. Use it as an asynchronous context manager."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.address = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> FakeEndpoints:
        application = web.Application(client_max_size=64 * 2**20)
        application.router.add_post("/v1/responses", self._responses)
        application.router.add_post("/v1beta/models/{name}", self._gemini)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        self.requests.append(asked)
        answers = [_text(item["output"]) for item in asked["input"] if item.get("type") == "function_call_output"]
        move = next_move(answers)
        items: list[dict[str, Any]] = [_message(len(answers), THOUGHT if move is not None else "That was it.")]
        if move is not None:
            name, namespace = _play(asked["tools"])
            call = {"type": "function_call", "id": f"fc_{len(answers)}", "call_id": f"call_{len(answers)}"}
            call |= {"name": name, "arguments": json.dumps({"position": move}), "status": "completed"}
            items.append(call | ({} if namespace is None else {"namespace": namespace}))
        details = {"input_tokens_details": {"cached_tokens": 3}, "output_tokens_details": {"reasoning_tokens": 0}}
        made = {
            **{"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": asked["model"]},
            **{"output": items, "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "error": None},
            "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, **details},
        }
        if not asked.get("stream"):
            return web.json_response(made)
        events = [("response.created", {"response": {**made, "status": "in_progress", "output": []}})]
        events += [("response.output_item.done", {"output_index": n, "item": item}) for n, item in enumerate(items)]
        events += [("response.completed", {"response": made})]
        return await _streamed(request, [(name, {"type": name, **event}) for name, event in events])

    async def _gemini(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        self.requests.append(asked)
        parts = [part for content in asked["contents"] for part in content["parts"]]
        answers = [json.dumps(part["functionResponse"]["response"]) for part in parts if "functionResponse" in part]
        names = [one["name"] for tool in asked.get("tools", []) for one in tool.get("functionDeclarations", [])]
        move = next_move(answers)
        said: list[dict[str, Any]] = [{"text": THOUGHT if move is not None else "That was it."}]
        if move is not None:
            name = next(name for name in names if name.endswith("play"))
            said.append({"functionCall": {"name": name, "args": {"position": move}}})
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12}
        candidate = {"content": {"role": "model", "parts": said}, "finishReason": "STOP", "index": 0}
        return await _streamed(request, [(None, {"candidates": [candidate], "usageMetadata": usage})])


def _message(number: int, text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": f"m{number}", "status": "completed", "role": "assistant", "content": content}


def _text(output: Any) -> str:
    return output if isinstance(output, str) else "".join(part.get("text", "") for part in output)


def _play(tools: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """The tool that plays, and the namespace that Codex puts it in."""
    for tool in tools:
        for inner in tool.get("tools", []):
            if inner["name"].endswith("play"):
                return inner["name"], tool["name"]
    return next(tool["name"] for tool in tools if tool.get("name", "").endswith("play")), None


async def _streamed(request: web.Request, events: Sequence[tuple[str | None, Any]]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for name, event in events:
        head = "" if name is None else f"event: {name}\n"
        await response.write(f"{head}data: {json.dumps(event)}\n\n".encode())
    return response
