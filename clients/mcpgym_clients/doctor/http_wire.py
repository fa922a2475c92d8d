"""MCP over streamable HTTP, byte for byte: one client is one pool of connections of its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import Mapping
from typing import Any

import aiohttp

from mcpgym_clients.doctor.wire import (
    CLIENT,
    HANDSHAKE_VERSIONS,
    MAX_ANSWER,
    MODERN_VERSION,
    Answer,
    Era,
    encode,
    message,
    of,
    read,
)
from mcpgym_rl.mcp_thin import header_value

SESSION = "mcp-session-id"


class HttpConnection:
    """See :class:`~mcpgym_clients.doctor.wire.Connection`.

    Args:
        url: the MCP endpoint.
        era: how to speak.
        headers: sent with every request.
        timeout: seconds an answer may take.
        version: the revision to ask for in ``initialize``.
    """

    def __init__(
        self,
        url: str,
        era: Era,
        headers: Mapping[str, str],
        timeout: float,
        version: str = HANDSHAKE_VERSIONS[0],
    ) -> None:
        self.url = url
        self.era = era
        self.version = MODERN_VERSION if era is Era.MODERN else version
        self.opening = Answer(problem="not opened yet")
        self.session: str | None = None
        self.asked: list[str] = []
        """What the server asked of its client, by method."""
        self.headers = dict(headers)
        self._timeout = timeout
        self._ids = itertools.count(1)
        self._http: aiohttp.ClientSession | None = None
        self._lent = False

    def beside(self, session: str | None) -> HttpConnection:
        """Another connection of its own that says it is in ``session``, without a handshake."""
        other = HttpConnection(self.url, self.era, self.headers, self._timeout, self.version)
        other.session = session
        return other

    def through(self, other: HttpConnection) -> HttpConnection:
        """This client, but over the very TCP connection of ``other``, which goes on owning it."""
        self._http, self._lent = other._pool(), True
        return self

    async def open(self) -> HttpConnection:
        """Shake hands, or discover; ``opening`` says how it went."""
        if self.era is Era.MODERN:
            self.opening = await self.request("server/discover")
            return self
        params = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": CLIENT}
        self.opening = await self.request("initialize", params)
        if self.opening.result is not None:
            self.session = self.opening.headers.get(SESSION)
            self.version = str(self.opening.result.get("protocolVersion", self.version))
            await self.notify("notifications/initialized", {})
        return self

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        patience: float | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask, and wait for the answer."""
        made = message(self.era, next(self._ids), method, params, meta)
        own: dict[str, str] = {}
        if self.era is Era.MODERN:
            own["Mcp-Method"] = method
            if isinstance(name := (params or {}).get("name") or (params or {}).get("uri"), str):
                with contextlib.suppress(UnicodeEncodeError):
                    own["Mcp-Name"] = header_value(name)
        return await self.post(encode(made), {**own, **(headers or {})}, patience=patience, number=made["id"])

    async def raw(self, body: bytes, *, patience: float | None = None, tool: str | None = None) -> Answer:
        """Send ``body`` as it is."""
        told = tool is not None and self.era is Era.MODERN
        headers = {"Mcp-Method": "tools/call", "Mcp-Name": header_value(str(tool))} if told else {}
        return await self.post(body, headers, patience=patience)

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification; what comes back is nothing."""
        await self.post(encode({"jsonrpc": "2.0", "method": method, "params": dict(params)}), {})

    async def post(
        self, body: bytes, headers: Mapping[str, str], *, patience: float | None = None, number: int | None = None
    ) -> Answer:
        """POST ``body``; the answer to request ``number``, or to the first that comes."""
        return await self.send("POST", body, headers, patience=patience, number=number)

    async def send(
        self,
        verb: str,
        body: bytes | None,
        headers: Mapping[str, str],
        *,
        patience: float | None = None,
        number: int | None = None,
    ) -> Answer:
        """Any HTTP request to the endpoint."""
        patience = self._timeout if patience is None else patience
        started = time.monotonic()

        def problem(words: str) -> Answer:
            return Answer(problem=words, seconds=time.monotonic() - started)

        try:
            async with asyncio.timeout(patience):
                everything = {**self._standard(), **headers}
                async with self._pool().request(
                    verb, self.url, headers=everything, data=body, allow_redirects=False
                ) as response:
                    kept = {name.lower(): value for name, value in response.headers.items()}
                    if response.content_type == "text/event-stream":
                        return await self._event(response, kept, started, number)
                    whole = await _all(response.content)
                    if whole is None:
                        return problem(f"an answer of more than {MAX_ANSWER} bytes")
                    seconds = time.monotonic() - started
                    if not whole and response.status < 300:
                        return Answer(result={}, status=response.status, headers=kept, seconds=seconds)
                    return read(whole, response.status, kept, seconds)
        except TimeoutError:
            return problem(f"no answer within {patience:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return problem(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)

    async def close(self) -> None:
        """DELETE the session, if there is one, and disconnect."""
        if self.session is not None:
            await self.send("DELETE", None, {}, patience=5)
        await self.abandon()

    async def abandon(self) -> None:
        """Disconnect."""
        if self._http is not None and not self._lent:
            await self._http.close()
        self._http = None

    def open_connections(self) -> int:
        """TCP connections that this client keeps open, idle ones, and that the server has not closed."""
        connector = self._http.connector if self._http is not None else None
        idle = getattr(connector, "_conns", {})  # aiohttp tells nobody; it drops those the server has closed
        return sum(handler.is_connected() for group in idle.values() for handler, _ in group)

    def _standard(self) -> dict[str, str]:
        found = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **self.headers,
        }
        if self.era is Era.MODERN or self.opening.result is not None or self.session is not None:
            found["MCP-Protocol-Version"] = self.version
        if self.session is not None:
            found["Mcp-Session-Id"] = self.session
        return found

    def _pool(self) -> aiohttp.ClientSession:
        if self._http is None:
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._http

    async def _event(
        self, response: aiohttp.ClientResponse, headers: Mapping[str, str], started: float, number: int | None
    ) -> Answer:
        data: list[bytes] = []
        rest, size = b"", 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > MAX_ANSWER:
                return Answer(problem=f"an answer of more than {MAX_ANSWER} bytes", status=response.status)
            *lines, rest = (rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    data.append(line[5:].removeprefix(b" "))
                elif not line and data:
                    text, data = b"\n".join(data), []
                    with contextlib.suppress(ValueError, RecursionError):
                        found = json.loads(text)
                        if isinstance(found, dict) and "method" in found:
                            if "id" in found:
                                self.asked.append(str(found["method"]))
                        elif isinstance(found, dict) and number in (None, found.get("id")):
                            return of(found, response.status, headers, time.monotonic() - started)
        seconds = time.monotonic() - started
        return Answer(problem="the stream of events ended without the answer", status=response.status, seconds=seconds)


async def _all(content: aiohttp.StreamReader) -> bytes | None:
    chunks, size = [], 0
    async for chunk in content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_ANSWER:
            return None
    return b"".join(chunks)
