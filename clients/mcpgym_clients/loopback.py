"""What every page that a command serves on this machine has: a secret in its address, and nothing from elsewhere.

Every address begins with a random token, so that no other page and no other user finds it; the Host header must be a
loopback name, so that no name of somebody else's leads here; and the page may load nothing from anywhere else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
NAMES = ("127.0.0.1", "localhost")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def guards() -> list[Middleware]:
    """The middleware that keeps a page to itself."""
    return [
        Middleware(_Headers),
        Middleware(TrustedHostMiddleware, allowed_hosts=list(NAMES), www_redirect=False),
    ]


def entrance(once: str, token: str, lost: str) -> Route:
    """``/ONCE/``, which leads to ``/TOKEN/`` a single time: the address that a browser is started with.

    A program's arguments can be read by every user of the machine, so the page's own address is not among them.
    """
    unused = [token]

    async def enter(request: Request) -> Response:
        if request.method != "GET" or not unused:
            return PlainTextResponse(lost, 404)
        return RedirectResponse(f"/{unused.pop()}/", 303)

    return Route(f"/{once}/", enter, methods=["GET"])


class _Headers:
    """Puts the headers that keep a page to itself on every answer, save those that it has of its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = {name.lower().encode(): value.encode() for name, value in HEADERS.items()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name.lower() for name, _ in message["headers"]}
                more = [(name, value) for name, value in self._headers.items() if name not in own]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        await self._app(scope, receive, sending)


class Json(JSONResponse):
    """JSON in ASCII: what a model wrote may hold half a character, which UTF-8 has no bytes for."""

    def render(self, content: Any) -> bytes:
        """``content`` as bytes."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def problem(status: int, sentence: str) -> Response:
    """What went wrong, for the page to show."""
    return Json({"problem": sentence}, status)


def file(folders: Sequence[Path], name: str, lost: str) -> Response:
    """A file of the page; only names that are there, so that no path leads out of the folders."""
    for folder in folders:
        found = {path.name: path for path in folder.iterdir() if path.suffix in KINDS}.get(name)
        if found is not None:
            return Response(found.read_bytes(), media_type=KINDS[found.suffix])
    return PlainTextResponse(lost, 404)
