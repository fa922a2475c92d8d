"""The page and its data over HTTP, on this machine alone and for whoever knows the address (see ``loopback``)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from mcpgym.errors import McpgymError
from mcpgym_clients.loopback import Json, entrance, file, guards, problem
from mcpgym_clients.viewer.answers import Answers

logger = logging.getLogger(__name__)

STATIC = Path(__file__).with_name("static")
LOST = "Open the whole address that mcpgym view printed: it ends with a secret.\n"


def viewer_app(answers: Answers, token: str, once: str) -> ASGIApp:
    """The application; its page is ``/TOKEN/``, and ``/ONCE/`` leads to it."""

    def answering(ask: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            try:
                return Json(await run_in_threadpool(ask, request))
            except LookupError as error:
                return problem(404, str(error.args[0]) if error.args else "there is no such thing")
            except McpgymError as error:
                return problem(400, str(error))
            except OSError as error:
                return problem(500, f"{error.filename}: {error.strerror}" if error.filename else str(error))

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
        entrance(once, token, LOST),
        Route(f"/{token}/", lambda request: file([STATIC], "index.html", LOST), methods=["GET"]),
        Route(
            f"/{token}/static/{{name}}",
            lambda request: file([STATIC], request.path_params["name"], LOST),
            methods=["GET"],
        ),
        *(Route(f"/{token}/api/{name}", answering(ask), methods=["GET"]) for name, ask in data.items()),
    ]
    middleware = [
        *guards(),
        Middleware(GZipMiddleware, minimum_size=50_000, compresslevel=1),
    ]
    return Starlette(routes=routes, middleware=middleware, exception_handlers={404: missing, 405: missing})


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else -1
