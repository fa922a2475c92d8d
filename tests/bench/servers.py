"""The servers that the benchmark loads, one process each, with the same tool: ``python -m tests.bench.servers KIND``.

``bare``: an ASGI function that reads JSON and answers JSON, the least any such server can cost. ``fast`` and ``sdk``:
ours, with and without its fast lane. ``fastmcp``: a FastMCP server as its tutorial writes it. Each prints one line of
JSON with the URLs to call, serves until its standard input closes, and measures nothing itself.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import Callable
from typing import Annotated, Any

import uvicorn

from mcpgym import Config, Environment, LazyTasks, Task, reward, task_id, tool
from mcpgym.episodes import Episodes

EPISODES = 64


class Counter(Environment[Task, list[int], Config]):
    """Adds up what it is given."""

    name = "counter"
    description = "Adds up what it is given."

    def tasks(self, split: str) -> LazyTasks:
        """A thousand equal tasks."""
        return LazyTasks(1000, lambda i: Task(task_id(split, i), split, ({"role": "user", "content": "Add."},)))

    def reset(self, task: Task, seed: int) -> list[int]:
        """Nothing added yet."""
        return [0]

    @tool(inline=True)
    def add(self, total: list[int], number: Annotated[int, "What to add."]) -> str:
        """Add a number; answers the sum so far."""
        total[0] += number
        return f"The sum is {total[0]}."

    @reward
    def some(self, total: list[int]) -> float:
        """Whether anything was added."""
        return float(total[0] > 0)


async def bare_app(scope: Any, receive: Any, send: Any) -> None:
    """The limit: read JSON, add, answer the same JSON that the others answer."""
    if scope["type"] == "lifespan":
        return
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    request = json.loads(body)
    number = request["params"]["arguments"]["number"]
    result = {"content": [{"type": "text", "text": f"The sum is {number}."}], "isError": False}
    answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def free_port() -> int:
    """A loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def say(urls: Any) -> None:
    """Tell the benchmark what to call."""
    print(json.dumps(urls), flush=True)


async def until_stdin_closes() -> None:
    """Wait for the benchmark to be done."""
    await asyncio.to_thread(sys.stdin.read)


async def serve_asgi(app: Any, urls: Callable[[int], list[str]]) -> None:
    """Serve any ASGI app under the settings our own server uses."""
    port = free_port()
    config = uvicorn.Config(
        app,
        port=port,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=2048,
        timeout_keep_alive=300,
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    say(urls(port))
    await until_stdin_closes()
    server.should_exit = True
    await task


async def serve_ours(fast_lane: bool) -> None:
    """Serve the counter as ``mcpgym serve`` would, with its episodes open."""
    from mcpgym.serving import serving

    episodes = Episodes({"counter": Counter()})
    async with serving(episodes, fast_lane=fast_lane) as server:
        opened = [await episodes.open("counter", split="train", index=i) for i in range(EPISODES)]
        say([f"{server.url}/e/{episode.token}/mcp" for episode in opened])
        await until_stdin_closes()


def serve_fastmcp() -> None:
    """Serve the same tool with FastMCP's defaults."""
    import threading

    from fastmcp import FastMCP

    server: Any = FastMCP("counter")
    total = [0]

    @server.tool
    def add(number: Annotated[int, "What to add."]) -> str:
        """Add a number; answers the sum so far."""
        total[0] += number
        return f"The sum is {total[0]}."

    port = free_port()

    def stop() -> None:
        import os

        say_when_up(port)
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=stop, daemon=True).start()
    server.run(transport="http", port=port, show_banner=False, log_level="warning")


def say_when_up(port: int) -> None:
    """Wait until the port answers, then tell."""
    import time

    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return say([f"http://127.0.0.1:{port}/mcp"] * EPISODES)
        time.sleep(0.05)
    raise SystemExit("the FastMCP server did not start within 30 s")


def main(kind: str) -> None:
    """Serve ``kind`` until standard input closes."""
    if kind == "fastmcp":
        serve_fastmcp()
        return
    serve = {
        "bare": lambda: serve_asgi(bare_app, lambda port: [f"http://127.0.0.1:{port}/mcp"] * EPISODES),
        "fast": lambda: serve_ours(True),
        "sdk": lambda: serve_ours(False),
    }[kind]
    import uvloop

    uvloop.run(serve())


if __name__ == "__main__":
    main(sys.argv[1])
