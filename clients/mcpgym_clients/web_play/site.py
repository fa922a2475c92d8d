"""The page and its games over HTTP, on this machine alone and for whoever knows the address (see ``loopback``).

The environment's app stands in a frame of its own, sandboxed, under another secret: it can reach nothing but the page
around it, which carries its calls.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from mcpgym.errors import ConfigurationError, McpgymError
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.forms import read_value
from mcpgym_clients.loopback import NAMES, POLICY, Json, entrance, file, guards, problem
from mcpgym_clients.viewer.site import STATIC as SHARED
from mcpgym_clients.web_play.game import Game, Games
from mcpgym_clients.web_play.tables import Table
from mcpgym_rl.policy import PolicyError

STATIC = Path(__file__).with_name("static")
FOLDERS = (STATIC, SHARED)
PAGE_POLICY = f"{POLICY}; frame-src 'self'"
APP_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
LOST = "Open the whole address that mcpgym play printed: it ends with a secret.\n"
MAX_BODY = 1024 * 1024
MAX_DEPTH_PROBLEM = "this is nested too deep"


def play_app(table: Table, games: Games, token: str, frame: str, once: str) -> ASGIApp:
    """The application; its page is ``/TOKEN/``, the environment's app ``/FRAME/``, and ``/ONCE/`` leads to the page."""

    def answering(ask: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if not _is_ours(request):
                return problem(403, "this page answers itself alone")
            try:
                return Json(await ask(request))
            except LookupError as error:
                return problem(404, str(error.args[0]) if error.args else "there is no such thing")
            except (McpgymError, PolicyError, CommandFailed, ValueError) as error:
                return problem(400, str(error))
            except RecursionError:
                return problem(400, MAX_DEPTH_PROBLEM)

        return endpoint

    async def page(request: Request) -> Response:
        answer = file(FOLDERS, "play.html", LOST)
        answer.headers["Content-Security-Policy"] = PAGE_POLICY
        return answer

    async def static(request: Request) -> Response:
        return file(FOLDERS, request.path_params["name"], LOST)

    async def app(request: Request) -> Response:
        if table.app is None:
            return PlainTextResponse(LOST, 404)
        return HTMLResponse(table.app.html, headers={"Content-Security-Policy": APP_POLICY})

    async def about(request: Request) -> dict[str, Any]:
        environment = table.environment
        return {
            "environment": environment.name,
            "description": environment.description,
            "mode": table.mode,
            "app": None if table.app is None else f"/{frame}/",
            "levels": list(table.levels),
            "values": environment.game_tree() is not None,
        }

    async def shown(number: str, game: Game) -> dict[str, Any]:
        return {"id": number, **await game.view()}

    async def new(request: Request) -> dict[str, Any]:
        given = await _body(request)
        number, game = await games.new(_text(given, "level"))
        return await shown(number, game)

    async def view(request: Request) -> dict[str, Any]:
        number = request.query_params.get("game", "")
        return await shown(number, games.get(number))

    async def values(request: Request) -> dict[str, Any]:
        return await games.get(request.query_params.get("game", "")).values()

    def acting(
        act: Callable[[Game, dict[str, Any]], Coroutine[Any, Any, dict[str, Any] | None]],
    ) -> Callable[[Request], Awaitable[Any]]:
        async def acted(request: Request) -> dict[str, Any]:
            given = await _body(request)
            number = _text(given, "game")
            game = games.get(number)
            async with game.lock:
                if given.get("version") != game.version:
                    return {**await shown(number, game), "behind": True}
                result = await games.unless_stopped(act(game, given))
                return {**await shown(number, game), "result": result}

        return acted

    async def call(game: Game, given: dict[str, Any]) -> dict[str, Any]:
        name, arguments = _text(given, "name"), given.get("arguments")
        if isinstance(fields := given.get("fields"), dict):
            tools = (await game.view())["tools"]
            arguments = read_fields(next((tool for tool in tools if tool["name"] == name), {}), fields)
        if not isinstance(arguments, dict):
            raise ConfigurationError("a call has arguments by name")
        return await game.call(name, arguments)

    async def say(game: Game, given: dict[str, Any]) -> None:
        await game.say(_text(given, "text"))

    async def choose(game: Game, given: dict[str, Any]) -> None:
        await game.choose(_text(given, "act"))

    async def step(game: Game, given: dict[str, Any]) -> None:
        await game.step()

    async def missing(request: Request, error: Exception) -> Response:
        return PlainTextResponse(LOST, 404)

    posts = {"new": new, "call": acting(call), "say": acting(say), "choose": acting(choose), "step": acting(step)}
    gets = {"about": about, "game": view, "values": values}
    routes = [
        Route(f"/{token}/", page, methods=["GET"]),
        Route(f"/{token}/static/{{name}}", static, methods=["GET"]),
        Route(f"/{frame}/", app, methods=["GET"]),
        entrance(once, token, LOST),
        *(Route(f"/{token}/api/{name}", answering(ask), methods=["GET"]) for name, ask in gets.items()),
        *(Route(f"/{token}/api/{name}", answering(ask), methods=["POST"]) for name, ask in posts.items()),
    ]
    return Starlette(routes=routes, middleware=guards(), exception_handlers={404: missing, 405: missing})


def read_fields(tool: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """A form's texts as the arguments of ``tool``; what is empty and may be left out is.

    Raises:
        ValueError: a text is none of what its argument takes; the message names the argument.
    """
    schema = tool.get("inputSchema", {})
    arguments = {}
    for name, about in schema.get("properties", {}).items():
        text = fields.get(name, "")
        if not isinstance(text, str):
            raise ConfigurationError(f"{name}: a form's fields are texts")
        if not text.strip() and name not in schema.get("required", []):
            continue
        try:
            arguments[name] = read_value(text, about)
        except ValueError as error:
            raise ConfigurationError(f"{name}: {error}") from None
    return arguments


async def _body(request: Request) -> dict[str, Any]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise ConfigurationError(f"a request has at most {MAX_BODY} bytes")
    try:
        given = json.loads(body)
    except ValueError:
        raise ConfigurationError("a request is a JSON object") from None
    if not isinstance(given, dict):
        raise ConfigurationError("a request is a JSON object")
    return given


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} is a text")
    return value


def _is_ours(request: Request) -> bool:
    """Whether a request was made by the page itself: a foreign page, and a sandboxed one, say another origin."""
    origin = request.headers.get("origin")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme == "http" and parts.hostname in NAMES and parts.netloc == request.headers.get("host", "")
