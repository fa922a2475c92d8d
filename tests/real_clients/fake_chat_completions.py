"""A chat-completions API on loopback, with a function for a model: what agent frameworks are pointed at in tests.

What arrives here is what a real model would be given. The model that a request names says whose conversation it is.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

Brain = Callable[[str, Sequence[str]], Awaitable[Sequence[tuple[str, Mapping[str, Any]]]]]
"""From the model's name and the texts of all tool results so far, the calls to make next; none ends the turn."""


class FakeChatCompletions:
    """Serves ``brain`` on a free port of loopback; keeps the last request of each model, and why ``brain`` raised.

    Use it as an asynchronous context manager; ``address`` is a base URL for OpenAI clients.
    """

    def __init__(self, brain: Brain) -> None:
        self.brain = brain
        self.last: dict[str, dict[str, Any]] = {}
        self.failures: dict[str, str] = {}
        self.address = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> FakeChatCompletions:
        application = web.Application(client_max_size=64 * 2**20)
        application.router.add_post("/v1/chat/completions", self._answer)
        self._runner = web.AppRunner(application)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.address = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.last[asked["model"]] = asked
        read = results(asked)
        names = [tool["function"]["name"] for tool in asked.get("tools", [])]
        try:
            calls = await self.brain(asked["model"], read)
            made = [
                {
                    "id": f"call_{len(read) + place}",
                    "type": "function",
                    "function": {"name": offered(name, names), "arguments": json.dumps(arguments)},
                }
                for place, (name, arguments) in enumerate(calls)
            ]
        except Exception as error:  # a client would try again and again: its turn ends instead, and the test tells why
            made = []
            self.failures[asked["model"]] = f"the model failed: {error!r}"
        message = {"role": "assistant", "content": "" if made else "Done."} | ({"tool_calls": made} if made else {})
        return web.json_response(
            {
                "id": "chatcmpl-fake",
                "object": "chat.completion",
                "created": 1,
                "model": asked["model"],
                "choices": [
                    {
                        "index": 0,
                        "message": message,
                        "finish_reason": "tool_calls" if made else "stop",
                        "logprobs": None,
                    }
                ],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        )


def offered(tool: str, names: Sequence[str]) -> str:
    """The name under which ``tool`` is on offer: its own, or that with a client's prefix."""
    return min((name for name in names if name.endswith(tool)), key=len, default=tool)


def results(request: Mapping[str, Any]) -> list[str]:
    """The texts of all tool results in a request, in order."""
    contents = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    return [
        content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        for content in contents
    ]


def tools(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools in a request, with MCP's names for what MCP has names for."""
    return [
        {
            "name": tool["function"]["name"],
            "description": tool["function"].get("description"),
            "inputSchema": tool["function"]["parameters"],
            **{key: value for key, value in tool["function"].items() if key not in _OURS},
        }
        for tool in request.get("tools", [])
    ]


_OURS = {"name", "description", "parameters"}
