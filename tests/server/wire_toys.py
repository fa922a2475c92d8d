"""Small environments and a server in this process, for the tests of the wire."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Annotated, Any

import uvicorn

from mcpgym import Config, Environment, LazyTasks, Message, Task, ToolError, derive_seed, reward, task_id, tool
from mcpgym.episodes import Episodes, Limits
from mcpgym.wire import PlayerApp, player_app

ICON = "data:image/svg+xml;base64,PHN2Zy8+"


class LedgerConfig(Config):
    limit: int = 1_000
    """Calls after which an episode is done."""


class Ledger(Environment[Task, list[str], LedgerConfig]):
    """Keeps a list of words: whatever crosses from another episode is seen at once."""

    name = "ledger"
    version = "3"
    description = "A list of words."
    instructions = "Add words with add; read them back with read."
    icon = ICON
    config_class = LedgerConfig

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(
            250,
            lambda i: Task(
                task_id(split, i),
                split,
                ({"role": "system", "content": "Be brief."}, {"role": "user", "content": f"Keep list {i} of {split}."}),
                {"answer": f"SECRET-{derive_seed(split, i)}"},
            ),
        )

    def reset(self, task: Task, seed: int) -> list[str]:
        return []

    def is_done(self, state: list[str]) -> bool:
        return "stop" in state

    @property
    def max_turns(self) -> int:
        return self.config.limit

    @tool(inline=True, title="Add a word")
    def add(self, state: list[str], word: Annotated[str, "The word."], times: Annotated[int, "How often."] = 1) -> str:
        """Add a word to the list."""
        if not 0 <= times <= 9:
            raise ToolError(f"times is 0 to 9, not {times}")
        state.extend([word] * times)
        return " ".join(state)

    @tool(inline=True, read_only=True)
    def read(self, state: list[str]) -> str:
        """Read the list."""
        return " ".join(state)

    @tool(timeout=5.0)
    async def add_slowly(
        self, state: list[str], word: Annotated[str, "The word."], seconds: Annotated[float, "s"]
    ) -> str:
        """Add a word after a while, on the event loop."""
        seen = len(state)
        await asyncio.sleep(seconds)
        assert len(state) == seen, "another call of this episode ran in between"
        state.append(word)
        return " ".join(state)

    @tool(timeout=5.0)
    def add_in_thread(self, state: list[str], word: Annotated[str, "The word."], seconds: Annotated[float, "s"]) -> str:
        """Add a word after a while, in a thread."""
        seen = len(state)
        time.sleep(seconds)
        assert len(state) == seen, "another call of this episode ran in between"
        state.append(word)
        return " ".join(state)

    @tool(timeout=0.15)
    def overrun(self, state: list[str], seconds: Annotated[float, "s"]) -> str:
        """Run past its own limit, in a thread."""
        time.sleep(seconds)
        state.append("overrun")
        return "late"

    @tool(inline=True)
    def freeze(self, state: list[str], seconds: Annotated[float, "s"]) -> str:
        """Block the event loop, which no tool should."""
        time.sleep(seconds)
        return "thawed"

    @tool(inline=True)
    def broken(self, state: list[str]) -> str:
        """Fail with a bug."""
        raise RuntimeError("the secret is 42")

    @reward
    def length(self, state: list[str]) -> float:
        return min(len(state), 1.0)


class Counter(Environment[Task, dict[str, int], Config]):
    """Another environment with a tool called ``read``, for names that clash."""

    name = "count-er"
    description = "A number."

    def tasks(self, split: str) -> Sequence[Task]:
        return LazyTasks(3, lambda i: Task(task_id(split, i), split, ({"role": "user", "content": f"Count to {i}."},)))

    def reset(self, task: Task, seed: int) -> dict[str, int]:
        return {"n": 0}

    @tool(inline=True)
    def read(self, state: dict[str, int]) -> str:
        """Read the number."""
        return str(state["n"])

    @tool(inline=True)
    def up(self, state: dict[str, int], by: Annotated[int, "How much."]) -> str:
        """Count up."""
        state["n"] += by
        return str(state["n"])


def toy_episodes(*, live: int = 10_000, idle_seconds: float = 1800.0, both: bool = True) -> Episodes:
    """Episodes over the toys."""
    environments: dict[str, Environment[Any, Any, Any]] = {"ledger": Ledger()}
    if both:
        environments["count-er"] = Counter()
    return Episodes(environments, Limits(idle_seconds=idle_seconds, live=live))


@contextlib.asynccontextmanager
async def served(app: PlayerApp) -> AsyncIterator[str]:
    """``app`` on a loopback port of its own, on this event loop; yields its base URL."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    config = uvicorn.Config(app, lifespan="off", log_level="warning", access_log=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    async with app.running():
        task = asyncio.create_task(server._serve([listener]))
        while not server.started:
            await asyncio.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


@contextlib.contextmanager
def served_in_thread(episodes: Episodes, **options: Any) -> Iterator[str]:
    """A server on an event loop of its own, for tests that must not share theirs with it."""
    ready, stop = threading.Event(), threading.Event()
    found: list[str] = []

    async def main() -> None:
        async with served(player_app(episodes, **options)) as url:
            found.append(url)
            ready.set()
            while not stop.is_set():
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield found[0]
    finally:
        stop.set()
        thread.join(20)


def prompt_of(messages: Sequence[Message]) -> str:
    """The prompt's text."""
    return "\n\n".join(message["content"] for message in messages)


def text_of(result: Any) -> str:
    """The one text of an official client's result."""
    assert len(result.content) == 1
    assert result.structured_content is None
    return str(result.content[0].text)


def modern_call(
    name: str, arguments: Mapping[str, Any] | None = None, *, meta: Mapping[str, Any] | None = None, number: Any = 1
) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and body of a plain 2026-07-28 ``tools/call``."""
    envelope = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        **(meta or {}),
    }
    params = {"name": name, "arguments": dict(arguments or {}), "_meta": envelope}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    return headers, {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def legacy_call(name: str, arguments: Mapping[str, Any] | None = None) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and body of a 2025-11-25 ``tools/call``."""
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
    }
    params = {"name": name, "arguments": dict(arguments or {})}
    return headers, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


HOST_HEADERS = {"host": "localhost:8000"}
Headers = list[tuple[bytes, bytes]]


def raw_headers(headers: Mapping[str, str]) -> Headers:
    """Headers as ASGI carries them."""
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


async def ask(
    app: PlayerApp, path: str, headers: Headers, body: bytes, method: str = "POST", chunks: int = 1
) -> tuple[int, bytes | None, bytes]:
    """Status, content type and body that ``app`` answers to one request, without a socket between."""
    size = max(1, -(-len(body) // chunks))
    parts = [body[i : i + size] for i in range(0, len(body), size)] or [b""]
    sent: list[Any] = []

    async def receive() -> Any:
        if parts:
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
    }
    await app(scope, receive, send)
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    answered = dict(sent[0]["headers"])
    return sent[0]["status"], answered.get(b"content-type"), sent[1]["body"]


async def stdio_main(bound: bool) -> None:
    """A stdio server of the toys, as a program."""
    from mcpgym.wire.stdio import Wire, serve_stdio

    wire = Wire()
    print("an environment prints while it starts")
    os.system("echo and so does a child of it")
    episodes = toy_episodes()
    episode = await episodes.open("ledger", split="train", index=4) if bound else None
    await serve_stdio(episodes, episode, wire=wire)


if __name__ == "__main__":
    asyncio.run(stdio_main(sys.argv[1] == "bound"))
