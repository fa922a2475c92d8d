"""One client's connection to the front: each request's bytes go, as they are, to the worker that its path names.

What is plain (one whole POST with a length, to an episode's URL) is passed on without being understood: the worker
checks it as if the client had come there. All else falls through to the front's application, which reads it with
uvicorn's parser. Each client has connections to workers of its own, so that none can ever read another's answer.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, cast

import httptools

from mcpgym.background import KEEP_ALIVE_SECONDS
from mcpgym.connections import ARRIVE_SECONDS, MAX_HEAD, BoundedHttp

if TYPE_CHECKING:
    from mcpgym.fleet.front import Front

CONNECT_SECONDS = 5.0
"""How long a worker may take to accept a connection."""
UNANSWERED = "mcpgym.unanswered"
"""Stands in a request's state where a worker had it already, and did not answer."""

MAX_PIECES = 2**18
"""Bytes of a plain request that are kept until it is whole: many clients send its head first."""

_PLAIN = re.compile(rb"POST /e/([a-z0-9-]+)-[0-9a-f]{32}/mcp HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]{1,9}) *\r\n", re.IGNORECASE)
_ODD = re.compile(
    rb"\r\n(?:transfer-encoding|expect|upgrade|te|trailer)[ \t]*:|\r\nconnection(?!: keep-alive\r\n)[ \t]*:|\r\n[ \t]",
    re.IGNORECASE,
)
_ANSWER_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+) *\r\n", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)


def plain_name(data: bytes) -> str | None:
    """Whose episode a request is for, if ``data`` is one whole plain request; None for all else."""
    found = plain_head(data)
    return found[0] if found is not None and found[1] == len(data) else None


def plain_head(data: bytes) -> tuple[str, int] | None:
    """Whose episode a plain request is for that ``data`` begins with, and its bytes; None for all else.

    Plain is what no two parsers could read differently: ``POST`` to an episode's URL, one ``Content-Length``, lines
    that end as they should, and no header that changes how the rest is read.
    """
    found = _PLAIN.match(data)
    if found is None:
        return None
    end = data.find(b"\r\n\r\n")
    if end < 0 or end > MAX_HEAD:
        return None
    head = data[: end + 2]
    lengths = _LENGTH.findall(head)
    if len(lengths) != 1 or head.lower().count(b"content-length") != 1:
        return None
    if head.count(b"\n") != head.count(b"\r\n") or head.count(b"\r") != head.count(b"\n") or b"\0" in head:
        return None
    return None if _ODD.search(head) else (found[1].decode(), end + 4 + int(lengths[0]))


class Upstream(asyncio.Protocol):
    """A connection to a worker, for one client's requests, one after another."""

    def __init__(self, client: Relay) -> None:
        self.transport: asyncio.Transport | None = None
        self._client = client
        self._asked = False
        self._head = b""
        self._left = -1
        self._parser: httptools.HttpResponseParser | None = None
        self._closes = False

    @property
    def usable(self) -> bool:
        """Whether a request may be sent."""
        return self.transport is not None and not self.transport.is_closing()

    def ask(self, request: bytes) -> None:
        """Send one request; its answer goes to the client."""
        assert self.transport is not None
        self._asked, self._left, self._head, self._parser = True, -1, b"", None
        self.transport.write(request)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is there."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """A part of the answer, which the client gets at once."""
        if not self._asked:  # nobody asked for this
            self.close()
            return
        client = self._client
        if self._parser is not None:
            client.answered(data)
            self._parse(data)
        elif self._left >= 0:
            client.answered(data)
            self._left -= len(data)
            self._ended(self._left <= 0)
        else:
            self._begin(self._head + data if self._head else data)

    def connection_lost(self, error: Exception | None) -> None:
        """The worker ended, or closed an idle connection."""
        if self._asked:
            self._asked = False
            self._client.unanswered(self)

    def close(self) -> None:
        """Let go; a call that is under way there is cancelled."""
        self._asked = False
        if self.transport is not None:
            self.transport.close()

    def on_message_complete(self) -> None:
        """The parser has seen the whole answer."""
        self._ended(True)

    def _begin(self, data: bytes) -> None:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._head = data
            return
        head = data[: end + 2]
        self._closes = _CLOSES.search(head) is not None
        self._client.answered(data)
        found = _ANSWER_LENGTH.search(head)
        if found is None:  # in chunks, or without a body
            self._parser = httptools.HttpResponseParser(self)
            self._parse(data)
            return
        self._left = int(found[1]) - (len(data) - end - 4)
        self._ended(self._left <= 0)

    def _parse(self, data: bytes) -> None:
        assert self._parser is not None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()
            self._client.unanswered(self)

    def _ended(self, whole: bool) -> None:
        if whole and self._asked:
            self._asked = False
            self._client.complete(closes=self._closes)


class Relay(BoundedHttp):
    """One client's connection. What is not relayed is answered as in any server of ours."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._front = cast("Front", self.app)
        self._upstreams: dict[str, Upstream] = {}
        self._request: bytes | None = None
        self._begun = False
        self._early: list[bytes] = []
        self._pieces: list[bytes] = []
        self._missing = 0
        self._idle: asyncio.TimerHandle | None = None
        self._last = 0.0
        self._closing = False

    def data_received(self, data: bytes) -> None:
        """Pass a plain request on; leave all else to the application."""
        if self.transport.is_closing():
            return
        between = self._whole and (self.cycle is None or self.cycle.response_complete)
        if self._request is not None or (between and self.flow.write_paused):
            self._early.append(data)  # the client does not wait for its answers; it gets them one after another
            if sum(map(len, self._early)) > MAX_HEAD:
                self.flow.pause_reading()
            return
        if self._pieces:
            self._pieces.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return
            data, self._pieces = b"".join(self._pieces), []
        found = plain_head(data) if between else None
        path = None if found is None else self._front.socket_of(found[0])
        if found is None or path is None or found[1] < len(data) or found[1] > MAX_PIECES:
            super().data_received(data)
        elif found[1] == len(data):
            self._pass_on(found[0], path, data)
        else:
            self._wait_for_the_rest(data, found[1])

    def resume_writing(self) -> None:
        """The client reads its answers again: what it asked meanwhile is next."""
        super().resume_writing()
        if self._request is None:
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client left: what it asked for is wanted no more."""
        self._request, self._pieces = None, []
        if self._idle is not None:
            self._idle.cancel()
        for upstream in self._upstreams.values():
            upstream.close()
        self._upstreams.clear()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """The front stops: an answer that is under way still goes out."""
        if self._request is None and not self._pieces:
            super().shutdown()
        else:
            self._closing = True

    def answered(self, data: bytes) -> None:
        """A part of the answer."""
        self._begun = True
        self.transport.write(data)

    def complete(self, *, closes: bool) -> None:
        """The answer was whole."""
        self._request = None
        self._last = self.loop.time()
        if closes or self._closing:
            self.transport.close()
        elif self._early and not self.flow.write_paused:
            self._next()
        elif self._idle is None:
            self._idle = self.loop.call_later(KEEP_ALIVE_SECONDS, self._look)

    def unanswered(self, upstream: Upstream) -> None:
        """The worker let go of the connection. What it had begun to answer cannot be made whole."""
        request, self._request = self._request, None
        if request is None or self.transport.is_closing():
            return
        if self._begun:
            self.transport.close()
            return
        self._fall_through(request, had_it=True)

    def _next(self) -> None:
        early, self._early = b"".join(self._early), []
        if early:
            self.flow.resume_reading()
            self.data_received(early)

    def _wait_for_the_rest(self, data: bytes, length: int) -> None:
        self._pieces, self._missing = [data], length - len(data)
        self._unset_keepalive_if_required()
        if self._deadline is None:
            self._deadline = self.loop.call_later(ARRIVE_SECONDS, self._late)

    def _pass_on(self, name: str, path: str, request: bytes) -> None:
        if self._deadline is not None:
            self._arrived()
        self._unset_keepalive_if_required()
        self._request, self._begun = request, False
        upstream = self._upstreams.get(name)
        if upstream is not None and upstream.usable:
            upstream.ask(request)
        else:
            task = self.loop.create_task(self._connect(name, path, request))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def _connect(self, name: str, path: str, request: bytes) -> None:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, upstream = await self.loop.create_unix_connection(lambda: Upstream(self), path)
        except (OSError, TimeoutError):
            if self._request is request:
                self._request = None
                self._fall_through(request, had_it=False)
            return
        if self._request is not request:  # the client left meanwhile
            upstream.close()
            return
        for gone in [known for known, other in self._upstreams.items() if not other.usable]:
            del self._upstreams[gone]
        self._upstreams[name] = upstream
        upstream.ask(request)

    def _fall_through(self, request: bytes, *, had_it: bool) -> None:
        state = self.app_state
        self.app_state = {**state, UNANSWERED: had_it}
        super().data_received(request)
        self.app_state = state
        early, self._early = self._early, []
        self.flow.resume_reading()
        for data in early:  # which uvicorn lines up behind it
            super().data_received(data)

    def _look(self) -> None:
        """Close a connection that has been idle too long."""
        self._idle = None
        left = self._last + KEEP_ALIVE_SECONDS - self.loop.time()
        busy = self._request is not None or self._pieces or not (self.cycle is None or self.cycle.response_complete)
        if busy or left > 0.0:
            self._idle = self.loop.call_later(max(left, 1.0), self._look)
        else:
            self.transport.close()
