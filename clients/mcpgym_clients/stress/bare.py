"""The limit: an ASGI function that reads JSON and answers JSON, and does nothing else.

``python -m mcpgym_clients.stress.bare`` prints its URL, and serves until its standard input closes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcpgym.background import HttpServer
from mcpgym.control_plane.listeners import listen_tcp


async def bare_app(scope: Any, receive: Any, send: Any) -> None:
    """Read a tool call, answer with the name of its tool, in the shape of MCP."""
    body = b""
    while True:
        part = await receive()
        body += part.get("body", b"")
        if not part.get("more_body"):
            break
    request = json.loads(body)
    result = {"content": [{"type": "text", "text": f"called {request['params']['name']}"}], "isError": False}
    answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


async def serve() -> None:
    """Serve exactly as mcpgym serves its own application."""
    listener = listen_tcp("127.0.0.1", 0, "the bare endpoint")
    server = HttpServer(bare_app, listener.socket)
    await server.begin()
    print(f"{listener.url}/mcp", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.end()


def main() -> None:
    """Serve until standard input closes."""
    if sys.platform == "win32":
        asyncio.run(serve())
        return
    import uvloop

    uvloop.run(serve())


if __name__ == "__main__":
    main()
