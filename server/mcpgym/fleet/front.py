"""The front's application: it knows whose each request is, and answers for the episodes of workers that died.

Plain requests never come here (:mod:`~mcpgym.fleet.relay`); what does is read whole, and asked again of its worker.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from typing import Any

import httptools
from starlette.types import Receive, Scope, Send

from mcpgym.fleet.crew import FATE_SECONDS, NOBODY, ROOM_SECONDS, Crew
from mcpgym.fleet.relay import UNANSWERED
from mcpgym.fleet.workers import Worker
from mcpgym.names import name_in
from mcpgym.wire.app import MAX_BODY, TOO_LARGE, PlayerApp, declared_length, read_body, refuse, unless_gone

_BARE = re.compile(r"/(?:([^/]+)/)?mcp")
_HOP = frozenset({b"connection", b"expect", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"})
"""Headers that are between two ends of a connection alone."""


class Front:
    """The ASGI app in front of ``crew``. ``graves`` answers at the URLs of episodes that died with their worker.

    Args:
        crew: the workers.
        graves: a players' app over :attr:`Crew.graves`, without bare addresses.
        bare: whether players may start episodes themselves.
    """

    def __init__(self, crew: Crew, graves: PlayerApp, *, bare: bool) -> None:
        self._crew, self._graves, self._bare = crew, graves, bare

    def socket_of(self, name: str) -> str | None:
        """Where the worker of this name listens; None where there is none that lives."""
        worker = self._crew.worker(name)
        return None if worker is None else worker.player_socket

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return await self._graves(scope, receive, send)
        path: str = scope["path"]
        if path.startswith("/e/") and path.endswith("/mcp"):
            worker = self._crew.worker(name_in(path[3:-4]))
            unanswered = worker is not None and scope.get("state", {}).get(UNANSWERED)
            if worker is not None and unanswered and not await worker.has_ended(FATE_SECONDS):
                return await refuse(send, 502, "the server did not answer; ask again")
            if worker is not None and not worker.member.gone:
                return await self._forward(worker, scope, receive, send)
        elif self._bare and _BARE.fullmatch(path):
            return await self._forward(None, scope, receive, send)
        return await self._graves(scope, receive, send)

    async def _forward(self, worker: Worker | None, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if declared_length(headers) > MAX_BODY or (body := await read_body(receive, MAX_BODY)) is TOO_LARGE:
            return await refuse(send, 413, f"a request's body has at most {MAX_BODY} bytes")
        if body is None:
            return None
        chosen = worker or await self._choose(body)
        if chosen is None:
            return await refuse(send, 503, NOBODY)
        exchange = _exchange(chosen.player_socket, _written(scope, body), scope["method"] == "HEAD")
        try:
            answer = await unless_gone(exchange, receive)
        except (OSError, EOFError, httptools.HttpParserError):
            chosen.member.up = False
            if worker is not None and await worker.has_ended(FATE_SECONDS):
                return await self._graves(scope, _said(body), send)
            return await refuse(send, 502, "the process that was to answer ended; ask again")
        if answer is not None:
            await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
            await send({"type": "http.response.body", "body": b"".join(answer.parts)})
        return None

    async def _choose(self, body: bytes) -> Worker | None:
        """Who answers at a bare address: whose handle is named there, else who has the least to do."""
        worker = self._crew.worker(name_in(handle_in(body)))
        if worker is not None:
            return worker
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ROOM_SECONDS):
                while (member := self._crew.least()) is None:  # noqa: ASYNC110 (workers come one by one)
                    await asyncio.sleep(0.05)
                if b"start_episode" in body:
                    member.begun += 1
                return self._crew.worker(member.name)
        return None


def handle_in(body: bytes) -> str:
    """The handle that a request at a bare address names: an argument of a call, or the end of a resource's URI."""
    try:
        request = json.loads(body)
        params = request["params"]
        uri, arguments = params.get("uri"), params.get("arguments")
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return ""
    if isinstance(uri, str):
        return uri.rpartition("/")[2]
    if isinstance(arguments, dict):
        for name in sorted((name for name in arguments if name.startswith("episode")), key=len):
            if isinstance(arguments[name], str) and name_in(arguments[name]):
                return str(arguments[name])
    return ""


class _Answer:
    """What a worker answered, as httptools reads it."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.parts: list[bytes] = []
        self.whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() not in _HOP and name.lower() != b"date":  # which is written anew
            self.headers.append((name.lower(), value))

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)

    def on_message_complete(self) -> None:
        self.whole = True


async def _exchange(path: str, request: bytes, only_head: bool) -> _Answer:
    """A worker's answer, over a connection of its own.

    Raises:
        OSError, EOFError, HttpParserError: it gave none.
    """
    reader, writer = await asyncio.open_unix_connection(path)
    answer = _Answer()
    parser = httptools.HttpResponseParser(answer)
    try:
        writer.write(request)
        while part := await reader.read(2**18):
            parser.feed_data(part)
        answer.status = parser.get_status_code()
        if not (answer.whole or only_head):
            raise EOFError("the answer broke off")
    finally:
        writer.close()
    return answer


def _written(scope: Scope, body: bytes) -> bytes:
    """The request as bytes, its body in one piece."""
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    lines = [b"%s %s HTTP/1.1" % (scope["method"].encode(), target)]
    lines += [b"%s: %s" % header for header in scope["headers"] if header[0] not in {*_HOP, b"content-length"}]
    return b"\r\n".join([*lines, b"content-length: %d" % len(body), b"connection: close", b"", body])


def _said(body: bytes) -> Receive:
    """A request's body once more, for another application."""
    messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    return receive
