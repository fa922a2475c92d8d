"""The control plane's HTTP application: :class:`~mcpgym.control.ControlPlane`, one route for each method."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from typing import Annotated, Any, Protocol, TypeVar

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from mcpgym.asking import settle
from mcpgym.control import ControlPlane, EpisodeStatus, Load, OpenedEpisode
from mcpgym.control_plane import bodies, codec, docs
from mcpgym.control_plane.address import PREFIX
from mcpgym.control_plane.failures import encode_error
from mcpgym.control_plane.gate import OPEN_PATHS, Gate
from mcpgym.errors import ConfigurationError, McpgymError
from mcpgym.rewards import Score

logger = logging.getLogger(__name__)

MAX_BODY = 16 * 1024 * 1024
"""Bytes a request's body may have."""

T = TypeVar("T")

_DESCRIPTION = """
What trainers and evaluators use to open, step, score and close episodes. A policy never gets near it: it has a
listener of its own, and players' URLs know none of these paths.

Send the secret with every request: "Authorization: Bearer SECRET". Only the health, this page and openapi.json are
open. Numbers are finite: there is no NaN in any body.
""".strip()


class ClientGone(Exception):
    """The client closed its connection before it had an answer."""


class Rendered(Protocol):
    """Metrics, of one process or of several."""

    def render(self) -> bytes | Awaitable[bytes]:
        """Everything in Prometheus's text format."""
        ...


class Route(APIRoute):
    """A route whose errors become the JSON form that every error has."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler with its errors answered."""
        handler = super().get_route_handler()

        async def answering(request: Request) -> Response:
            try:
                return await handler(request)
            except (HTTPException, asyncio.CancelledError):
                raise
            except ClientGone:
                return Response(status_code=499)
            except McpgymError as error:
                return failed(error)
            except RequestValidationError as error:
                problems = "; ".join(f"{item['loc'][-1]}: {item['msg']}" for item in error.errors())
                return failed(ConfigurationError(problems))
            except Exception as error:
                logger.exception("%s %s failed", request.method, self.path)
                return failed(error)

        return answering


def control_app(control: ControlPlane, metrics: Rendered, secret: str, *, hosts: Collection[str] | None) -> ASGIApp:
    """The application.

    Args:
        control: what answers.
        metrics: what ``/metrics`` shows.
        secret: what a request must carry.
        hosts: names the Host header may have (without a port); None for any, as on a unix socket.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.router.route_class = Route
    _add_episodes(app, control)
    _add_catalogue(app, control)
    _add_server(app, control, metrics)
    app.add_exception_handler(HTTPException, _http_failure)
    return Gate(app, secret, hosts)


def _add_catalogue(app: FastAPI, control: ControlPlane) -> None:
    @app.get(f"{PREFIX}/environments", summary="List the environments", responses=_answers(bodies.EnvironmentsAnswer))
    async def environments() -> Response:
        return answer({"environments": await control.environments()})

    @app.get(f"{PREFIX}/tasks", summary="List tasks of a split", responses=_answers(bodies.TasksAnswer, 404, 422))
    async def tasks(
        environment: Annotated[str, Query(description="The environment's name.")],
        split: Annotated[str, Query(description="The split's name.")],
        offset: Annotated[int, Query(description="The first task's place in the split.")] = 0,
        limit: Annotated[int, Query(description="How many at most; 0 to 10000.")] = 100,
        config: Annotated[str | None, Query(description="Configuration fields to change, as a JSON object.")] = None,
    ) -> Response:
        """Prompts only: what is hidden from a policy stays hidden here too."""
        changed = None if config is None else codec.decode(config.encode())
        if changed is not None and not isinstance(changed, dict):
            raise ConfigurationError("config: a JSON object of configuration fields")
        found = await control.tasks(environment, split, offset=offset, limit=limit, config=changed)
        return answer({"tasks": found})


def _add_episodes(app: FastAPI, control: ControlPlane) -> None:
    @app.post(
        f"{PREFIX}/episodes",
        summary="Open an episode",
        responses=_answers(OpenedEpisode, 404, 413, 422, 429, 500, 503),
        openapi_extra=dict(bodies.documented(bodies.OpenBody)),
    )
    async def open_episode(request: Request) -> Response:
        """Answers with its token, the player's URL, the prompt, the tools and their schema hash."""
        body = bodies.checked(bodies.OpenBody, codec.decode(await read(request)))
        opened = await while_connected(request, control.open(**body.model_dump()))
        if await request.is_disconnected():
            await control.close(opened.token)  # nobody will ever know its token
            raise ClientGone
        return answer(opened)

    @app.get(
        f"{PREFIX}/episodes/{{token}}/calls",
        summary="The calls of an episode",
        responses=_answers(bodies.CallsAnswer, 404, 410),
    )
    async def calls(token: str) -> Response:
        """Every call that it has answered, in order, whoever sent it."""
        return answer({"calls": [record._asdict() for record in await control.calls(token)]})

    @app.post(
        f"{PREFIX}/step",
        summary="Answer many tool calls",
        responses=_answers(bodies.StepAnswer, 413, 422),
        openapi_extra=dict(bodies.documented(bodies.StepBody)),
    )
    async def step(request: Request) -> Response:
        """Calls of one episode are answered in their order, calls of different episodes side by side."""
        calls = codec.calls_of(codec.decode(await read(request)))
        results = await while_connected(request, control.step(calls))
        return Response(codec.encode_results(results), media_type="application/json")

    @app.post(
        f"{PREFIX}/episodes/{{token}}/respond",
        summary="Let the environment answer as the user",
        responses=_answers(bodies.RespondAnswer, 404, 410, 413, 422, 500),
        openapi_extra=dict(bodies.documented(bodies.MessagesBody)),
    )
    async def respond(token: str, request: Request) -> Response:
        """For a policy that stopped without a tool call; null ends the rollout."""
        messages = bodies.messages_of(codec.decode(await read(request)), optional=False)
        said = await while_connected(request, control.respond(token, messages or []))
        return answer({"messages": said})

    @app.get(f"{PREFIX}/episodes/{{token}}", summary="Where an episode stands", responses=_answers(EpisodeStatus, 404))
    async def status(token: str) -> Response:
        """Also of one that has ended: then "ended" says why."""
        return answer(await control.status(token))

    @app.post(
        f"{PREFIX}/episodes/{{token}}/score",
        summary="Score an episode",
        responses=_answers(Score, 404, 410, 413, 422, 500),
        openapi_extra=dict(bodies.documented(bodies.ScoreBody, required=False)),
    )
    async def score(token: str, request: Request) -> Response:
        """A component whose input was missing is null, and so is a total that needs it.

        The receipt is the score, signed by the server; null where it signs nothing.
        """
        body = await read(request)
        messages, claims = bodies.scoring_of(codec.decode(body) if body else None)
        return answer(await while_connected(request, control.score(token, messages, claims=claims)))

    @app.delete(f"{PREFIX}/episodes/{{token}}", summary="End an episode", status_code=204, responses=_errors(404))
    async def close(token: str) -> Response:
        """Ending an ended one does nothing."""
        await control.close(token)
        return Response(status_code=204)


def _add_server(app: FastAPI, control: ControlPlane, metrics: Rendered) -> None:
    made: dict[str, Any] = {}

    def document() -> dict[str, Any]:
        if not made:
            made.update(_openapi(app))
        return made

    @app.get(
        f"{PREFIX}/health",
        summary="Whether the server is alive",
        responses=_answers(bodies.HealthAnswer) | {503: {"model": bodies.HealthAnswer, "description": "Draining."}},
    )
    async def health() -> Response:
        """Needs no secret, and tells nothing else. A server that goes down answers 503 while its episodes end."""
        draining = (await control.load()).draining
        return answer({"status": "draining" if draining else "ok"}, 503 if draining else 200)

    @app.get(f"{PREFIX}/load", summary="How much the server has to do", responses=_answers(Load))
    async def load() -> Response:
        """Live episodes, how many there may be, and whether it begins any more."""
        return answer(await control.load())

    @app.get(f"{PREFIX}/metrics", summary="Metrics for Prometheus", response_class=PlainTextResponse)
    async def show_metrics() -> Response:
        """Episodes, calls, the event loop's lag, and the process."""
        return Response(await settle(metrics.render()), media_type=CONTENT_TYPE_LATEST)

    @app.get(f"{PREFIX}/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return answer(document())

    @app.get(f"{PREFIX}/docs", include_in_schema=False)
    async def show_docs() -> Response:
        return HTMLResponse(docs.page(document()), headers={"content-security-policy": docs.POLICY})


def answer(value: Any, status: int = 200) -> Response:
    """``value`` as a JSON response."""
    return Response(codec.encode(value), status, media_type="application/json")


def failed(error: Exception) -> Response:
    """``error`` as a JSON response."""
    status, value = encode_error(error)
    return answer(value, status)


async def read(request: Request) -> bytes:
    """The request's body.

    Raises:
        HTTPException: it has more than ``MAX_BODY`` bytes.
        ClientGone: it never came whole.
    """
    parts: list[bytes] = []
    size = 0
    receive = request.receive
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            raise HTTPException(413, f"the body has more than {MAX_BODY} bytes; send less, or in parts")
        if not message.get("more_body", False):
            return part if not parts else b"".join([*parts, part])
        parts.append(part)


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of ``work``, which is cancelled when the client goes away before it is done.

    Raises:
        ClientGone: it did.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.sleep(0)  # what needs no waiting is done after one turn of the loop
        if not task.done():
            gone = asyncio.ensure_future(_disconnected(request.receive))
            try:
                await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
            if not task.done():
                raise ClientGone
        return task.result()
    finally:
        if not task.done():
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody else will look
            task.cancel()


async def _disconnected(receive: Callable[[], Awaitable[Mapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _http_failure(request: Request, error: Exception) -> Response:
    status, detail = (error.status_code, str(error.detail)) if isinstance(error, HTTPException) else (500, "")
    kind, message = {
        404: ("not_found", f"no path {request.url.path[:200]!r} on the control plane; see {PREFIX}/docs"),
        405: ("wrong_method", f"{request.url.path[:200]} does not take {request.method[:20]}; see {PREFIX}/docs"),
        413: ("body_too_large", detail),
    }.get(status, ("configuration", detail))
    return answer({"error": {"kind": kind, "message": message}}, status)


def _openapi(app: FastAPI) -> dict[str, Any]:
    from mcpgym import __version__

    made = get_openapi(title="mcpgym control plane", version=__version__, description=_DESCRIPTION, routes=app.routes)
    parts = made.setdefault("components", {})
    parts["schemas"] = parts.get("schemas", {}) | bodies.request_schemas()
    for unused in ("HTTPValidationError", "ValidationError"):  # FastAPI's own forms, which no route answers with
        parts["schemas"].pop(unused, None)
    parts["securitySchemes"] = {"secret": {"type": "http", "scheme": "bearer"}}
    for path, methods in made["paths"].items():
        for operation in methods.values():
            if "HTTPValidationError" in str(operation["responses"].get("422")):
                del operation["responses"]["422"]
            operation["security"] = [] if path in OPEN_PATHS else [{"secret": []}]
    return made


_MEANINGS = {
    401: "The secret is missing or wrong.",
    404: "No such name or episode.",
    410: "The episode has ended.",
    413: "The body is too large.",
    422: "A value does not fit; the message says which and what would.",
    429: "The cap on live episodes is reached.",
    500: "The environment failed; the episode has no score.",
    503: "The server goes down; no other episode begins.",
}


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {s: {"model": bodies.ErrorAnswer, "description": _MEANINGS[s]} for s in (401, *statuses)}


def _answers(model: type, *statuses: int) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": model, "description": "Done."}, **_errors(*statuses)}
