"""The players' listener: an ASGI app that knows URLs, refuses what it must, and notices when a client goes away."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import re
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, TypeVar

from starlette.types import Message, Receive, Scope, Send

from mcpgym.calls import CallResult
from mcpgym.episode import Episode
from mcpgym.episodes import Episodes
from mcpgym.errors import EpisodeError
from mcpgym.telemetry import switch
from mcpgym.telemetry.context import CURRENT, NOBODY, TRACEPARENT, caller
from mcpgym.wire.bare import BarePlayer, Handles
from mcpgym.wire.fast_lane import FastCall, FastLane
from mcpgym.wire.hosting import Hosting
from mcpgym.wire.hosts import HostCheck
from mcpgym.wire.mcp_server import CLIENT_INFO, KEY, PLAYER
from mcpgym.wire.players import EndedPlayer, EpisodePlayer, Player
from mcpgym.wire.results import idempotency_key

ResultT = TypeVar("ResultT")

MAX_BODY = 1024 * 1024
"""Bytes of a request's body beyond which it is refused."""

_BARE = re.compile(r"/(?:([^/]+)/)?mcp")


def player_app(
    episodes: Episodes,
    *,
    allowed_hosts: Sequence[str] = (),
    max_body: int = MAX_BODY,
    fast_lane: bool = True,
    bare: bool = True,
) -> PlayerApp:
    """The ASGI app through which players reach ``episodes``. Nothing of the control plane is in it.

    It serves ``/e/<token>/mcp`` (one episode), ``/mcp`` (every environment, explicit handles) and
    ``/<environment>/mcp`` (one environment, explicit handles); all else is 404.

    Args:
        episodes: what is played.
        allowed_hosts: names, with or without a port, that this server answers to besides the loopback ones.
        max_body: bytes a request's body may have.
        fast_lane: whether plain calls of the 2026-07-28 protocol skip the SDK; the answers are the same bytes.
        bare: whether the addresses with handles are there; without them, players reach only what was opened for them.
    """
    return PlayerApp(episodes, allowed_hosts=allowed_hosts, max_body=max_body, fast_lane=fast_lane, bare=bare)


class PlayerApp:
    """See :func:`player_app`. Enter :meth:`running` around its use, unless the ASGI server runs lifespans."""

    def __init__(
        self,
        episodes: Episodes,
        *,
        allowed_hosts: Sequence[str] = (),
        max_body: int = MAX_BODY,
        fast_lane: bool = True,
        bare: bool = True,
    ) -> None:
        if max_body <= 0:
            raise ValueError(f"max_body is a number of bytes above 0, not {max_body}")
        self._episodes = episodes
        self._hosts = HostCheck(allowed_hosts)
        self._max_body = max_body
        self._fast_lane = FastLane() if fast_lane else None
        self._hosting = Hosting(max_body)
        handles = Handles(episodes)
        served = list(episodes.environments) if bare else []
        self._bare: dict[str | None, Player] = {name: BarePlayer(episodes, handles, [name]) for name in served}
        if bare:
            self._bare[None] = BarePlayer(episodes, handles, served)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """What the app needs while it serves; leaving it cancels what is still being answered.

        Meanwhile the garbage collector leaves alone what exists now (modules, schemas): walking over it again and
        again, because calls leave records behind, would cost a third of a call.
        """
        async with self._hosting.running():
            gc.freeze()
            try:
                yield
            finally:
                gc.unfreeze()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:  # a WebSocket: closing before accepting is a 403
            await receive()
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        once = len(headers) == len(scope["headers"])
        if not once or b"origin" in headers or headers.get(b"host") not in self._hosts.known:
            problem = self._hosts.problem(_all(scope, b"host"), _all(scope, b"origin"))
            if problem is not None:
                return await refuse(send, *problem)
        player = self._player(scope["path"])
        if player is None:
            return await refuse(send, 404, "there is nothing here")
        if scope["method"] != "POST":
            return await refuse(send, 405, "send MCP requests with POST")
        if declared_length(headers) > self._max_body or (body := await read_body(receive, self._max_body)) is TOO_LARGE:
            return await refuse(send, 413, f"a request's body has at most {self._max_body} bytes")
        if body is None:
            return None  # the client left before it had asked anything
        key = headers.get(b"idempotency-key")
        header = None if key is None else key.decode("latin-1")
        if once and self._fast_lane is not None and type(player) is EpisodePlayer:
            call = self._fast_lane.read(headers, body)
            if call is not None:
                key, episode = idempotency_key(call.meta, header), player.episode
                player.saw(call.meta.get(CLIENT_INFO))
                if switch.recorder is not None:
                    result = _watched_call_now(episode, call, key)
                else:
                    result = episode.call_now(call.name, call.arguments, key)
                if result is None:
                    result = await unless_gone(episode.call(call.name, call.arguments, key), receive)
                    if result is None:
                        return None
                return await _send(send, 200, self._fast_lane.answer(call, episode.environment, result))
        if b'"initialize"' in body and (client := introduction(body)) is not None:
            player.saw(client)
        replay = _Replay(body)
        asked = {**scope, "headers": _trimmed(scope["headers"]), PLAYER: player, KEY: header}
        handled = self._hosting.handle(player.face, asked, replay, send)
        return await unless_gone(handled, receive)

    def _player(self, path: str) -> Player | None:
        """Who plays at ``path``; None where nobody does."""
        if path.startswith("/e/") and path.endswith("/mcp"):
            token = path[3:-4]
            try:
                return EpisodePlayer(self._episodes.get(token))
            except EpisodeError:
                stone = self._episodes.tombstone(token)
                return None if stone is None else EndedPlayer(stone)
        if (match := _BARE.fullmatch(path)) is not None:
            return self._bare.get(match[1])
        return None

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """For ASGI servers that run lifespans: the same as :meth:`running`."""
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


def _watched_call_now(episode: Episode, call: FastCall, key: str | None) -> CallResult | None:
    """``episode.call_now``, of which telemetry is to know the caller.

    Who names a span sets this request's context, and so does who has to wait. The others, nearly all, spare that: it
    takes about as long as telling of the call.
    """
    watch = episode.watch
    if watch is None or TRACEPARENT in call.meta:
        CURRENT.set(caller(call.meta, "mcp"))  # each request has a context of its own
        return episode.call_now(call.name, call.arguments, key)
    watch.caller = NOBODY["mcp"]
    result = episode.call_now(call.name, call.arguments, key)
    watch.caller = None
    if result is None:
        CURRENT.set(NOBODY["mcp"])
    return result


def introduction(body: bytes) -> Any:
    """What the client calls itself in an ``initialize``, the one request of the older protocols that says it.

    Here every request is answered for itself, so that the SDK has forgotten it when the calls come.
    """
    with contextlib.suppress(ValueError, RecursionError):
        request = json.loads(body)
        if isinstance(request, dict) and request.get("method") == "initialize":
            params = request.get("params")
            return params.get("clientInfo") if isinstance(params, dict) else None
    return None


class _Replay:
    """The body once more, for the SDK; after it, nothing comes. (A client that leaves cancels the whole request.)"""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    async def __call__(self) -> Message:
        if self._body is None:
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


async def unless_gone(work: Coroutine[Any, Any, ResultT], receive: Receive) -> ResultT | None:
    """The result of ``work``; None, with ``work`` cancelled, when the client goes away first.

    A JSON response gives no other sign: without this, a call that nobody waits for runs on and changes the episode.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnect(receive))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
    return None if task.cancelled() else task.result()


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


TOO_LARGE = b"\0"
"""Stands for a body over the bound; compared by identity."""


async def read_body(receive: Receive, limit: int) -> bytes | None:
    """The request's body; ``TOO_LARGE`` beyond ``limit`` bytes; None when the client left."""
    message = await receive()
    if message["type"] != "http.request":
        return None
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body if len(body) <= limit else TOO_LARGE
    parts, size = [body], len(body)
    while message.get("more_body", False):
        if size > limit:
            return TOO_LARGE
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    return b"".join(parts) if size <= limit else TOO_LARGE


def _all(scope: Scope, name: bytes) -> list[bytes]:
    return [value for found, value in scope["headers"] if found == name]


def _trimmed(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """``headers`` without the blanks around values, which are no part of them (RFC 9110, 5.5); parsers leave some."""
    return [(name, value.strip(b" \t")) for name, value in headers]


def declared_length(headers: dict[bytes, bytes]) -> int:
    """The length the client announces; 0 where it announces none that can be read."""
    text = headers.get(b"content-length", b"")
    return int(text) if text.isdigit() and len(text) < 20 else 0


async def _send(send: Send, status: int, body: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json"), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, status: int, message: str) -> None:
    """An HTTP error with a JSON-RPC body, so that MCP clients show its reason."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": message}}
    allow = [(b"allow", b"POST")] if status == 405 else []
    await _send(send, status, json.dumps(error, separators=(",", ":")).encode(), *allow)
