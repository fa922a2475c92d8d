"""A host of MCP Apps for the tests: a page of the official parts, on one port with a real server of ours."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.node_tools import package

from mcpgym.background import HttpServer
from mcpgym.control_plane.listeners import listen_tcp
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes
from mcpgym.wire import player_app

PAGE = Path(__file__).parent / "pages" / "app_host.html"


@dataclass
class Hosted:
    """The server: its base URL, and its episodes, which may be asked on its own event loop alone."""

    url: str
    episodes: Episodes
    loop: asyncio.AbstractEventLoop

    def open(self, environment: str, **task: Any) -> Any:
        """An episode of this server."""
        return asyncio.run_coroutine_threadsafe(self.episodes.open(environment, **task), self.loop).result(30)


@contextlib.contextmanager
def app_host(*environments: Environment[Any, Any, Any]) -> Iterator[Hosted]:
    """The server and the host's page (``/host``) in a thread of their own."""
    modules = package("@modelcontextprotocol/ext-apps").parents[1]
    ready, found = threading.Event(), []

    async def main() -> None:
        episodes = Episodes({environment.name: environment for environment in environments})
        players = player_app(episodes)
        listener = listen_tcp("127.0.0.1", 0, "--port")
        server = HttpServer(_beside(players, modules), listener.socket)
        stop = asyncio.Event()
        async with players.running():
            await server.begin()
            found.append((Hosted(listener.url, episodes, asyncio.get_running_loop()), stop))
            ready.set()
            await stop.wait()
            await server.end()
        await episodes.aclose()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    assert ready.wait(30)
    hosted, stop = found[0]
    try:
        yield hosted
    finally:
        hosted.loop.call_soon_threadsafe(stop.set)
        thread.join(20)


def _beside(players: ASGIApp, folder: Path) -> ASGIApp:
    """The page and the modules it imports beside the players' addresses: a page reaches its own origin alone."""
    modules = StaticFiles(directory=folder)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path == "/host":
            await FileResponse(PAGE, media_type="text/html")(scope, receive, send)
        elif path.startswith("/modules/"):
            kind = {**scope, "path": path.removeprefix("/modules"), "root_path": ""}
            await modules(kind, receive, send)
        else:
            await players(scope, receive, send)

    return app
