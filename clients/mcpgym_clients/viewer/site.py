"""The page and its data over HTTP, on this machine alone and for whoever knows the address.

Every address begins with a random token, so that no other page and no other user finds it; the Host header must be a
loopback name, so that no name of somebody else's leads here; and the page may load nothing from anywhere else.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcpgym.errors import McpgymError
from mcpgym_clients.viewer.answers import Answers

logger = logging.getLogger(__name__)

STATIC = Path(__file__).with_name("static")
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
LOST = "Open the whole address that mcpgym view printed: it ends with a secret.\n"


def viewer_app(answers: Answers, token: str) -> ASGIApp:
    """The application; its page is ``/TOKEN/``."""

    def answering(ask: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                return _Json(await run_in_threadpool(ask, request))
            except LookupError as error:
                return _problem(404, str(error.args[0]) if error.args else "there is no such thing")
            except McpgymError as error:
                return _problem(400, str(error))
            except OSError as error:
                return _problem(500, f"{error.filename}: {error.strerror}" if error.filename else str(error))

        return endpoint

    def run(request: Request) -> str:
        return request.query_params.get("run", "")

    async def missing(request: Request, error: Exception) -> Response:
        return PlainTextResponse(LOST, 404)

    data: dict[str, Callable[[Request], Any]] = {
        "runs": lambda request: answers.runs(),
        "run": lambda request: answers.run(run(request)),
        "traces": lambda request: answers.traces(run(request), request.query_params),
        "trace": lambda request: answers.trace(run(request), _number(request.query_params.get("n", ""))),
        "weigh": lambda request: answers.weigh(run(request)),
        "compare": lambda request: answers.compare(request.query_params.getlist("run")),
    }
    routes = [
        Route(f"/{token}/", lambda request: _file("index.html"), methods=["GET"]),
        Route(f"/{token}/static/{{name}}", lambda request: _file(request.path_params["name"]), methods=["GET"]),
        *(Route(f"/{token}/api/{name}", answering(ask), methods=["GET"]) for name, ask in data.items()),
    ]
    middleware = [
        Middleware(_Headers),
        Middleware(TrustedHostMiddleware, allowed_hosts=list(NAMES), www_redirect=False),
        Middleware(GZipMiddleware, minimum_size=50_000, compresslevel=1),
    ]
    return Starlette(routes=routes, middleware=middleware, exception_handlers={404: missing, 405: missing})


class _Headers:
    """Puts the headers that keep a page to itself on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *self._headers]}
            await send(message)

        await self._app(scope, receive, sending)


class _Json(JSONResponse):
    """JSON in ASCII: what a model wrote may hold half a character, which UTF-8 has no bytes for."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def _file(name: str) -> Response:
    """A file of the page; only names that are there, so that no path leads out of the folder."""
    found = {path.name: path for path in STATIC.iterdir() if path.suffix in KINDS}.get(name)
    if found is None:
        return PlainTextResponse(LOST, 404)
    return Response(found.read_bytes(), media_type=KINDS[found.suffix])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1


def _problem(status: int, sentence: str) -> Response:
    return _Json({"problem": sentence}, status)
