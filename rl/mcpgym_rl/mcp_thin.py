"""A thin MCP client: protocol 2026-07-28 over one HTTP connection pool, a few times cheaper than the SDK's.

It speaks what a rollout needs, ``tools/list`` and ``tools/call``, and reads JSON and SSE answers alike. Every call
carries a fresh idempotency key, so that trying again after a dropped connection cannot run it twice.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import re
import secrets
from collections.abc import Mapping
from typing import Any

import aiohttp

from mcpgym import __version__, meta_keys
from mcpgym.calls import CallResult
from mcpgym.errors import ServerUnavailable
from mcpgym.telemetry import switch
from mcpgym.telemetry.context import carry
from mcpgym_rl.failures import explain

PROTOCOL = "2026-07-28"
MAX_ANSWER = 32 * 1024 * 1024
"""The largest answer that is read, in bytes."""
MAX_PAGES = 100
RETRY_SECONDS = 0.1
KEEP_SECONDS = 30.0

_INVALID_PARAMS = -32602
_PLAIN = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientInfo": {"name": "mcpgym", "version": __version__},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": PROTOCOL,
}


class ThinClient:
    """The connections to one server, shared by all its episodes. ``timeout`` is in seconds, for one request."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._ids = itertools.count(1)
        self._session: aiohttp.ClientSession | None = None

    async def connect(self, url: str) -> ThinConnection:
        """A view of the server at ``url``; nothing is sent yet."""
        return ThinConnection(self, url)

    async def aclose(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def request(self, url: str, method: str, params: Mapping[str, Any], name: str | None = None) -> Any:
        """The result of one request; one that meets a dropped connection is sent once more.

        Raises:
            RpcError: the server answered with an error.
            ServerUnavailable: it did not answer, or not as an MCP server does.
        """
        request_id = next(self._ids)
        body = json.dumps(
            {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params},
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()
        headers = {**_HEADERS, "Mcp-Method": method}
        if name is not None:
            headers["Mcp-Name"] = header_value(name)
        for attempt in (1, 2):
            try:
                return await self._send(url, headers, body, request_id)
            except _Dropped as error:
                if attempt == 2:
                    raise ServerUnavailable(str(error)) from None
                await asyncio.sleep(RETRY_SECONDS)
        raise AssertionError("unreachable")

    async def _send(self, url: str, headers: Mapping[str, str], body: bytes, request_id: int) -> Any:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_SECONDS)
            timeout = aiohttp.ClientTimeout(total=self._timeout, sock_connect=10)
            self._session = aiohttp.ClientSession(
                connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
            )
        where = _where(url)
        try:
            async with self._session.post(url, headers=headers, data=body, allow_redirects=False) as response:
                if response.status in (502, 503, 504):
                    raise _Dropped(f"the MCP server at {where} answers {response.status}")
                if response.content_type == "text/event-stream":
                    answer = await _event(response.content, request_id, where)
                else:
                    answer = _loaded(await _all(response.content, where), response.status, where)
        except TimeoutError:
            raise ServerUnavailable(f"the MCP server at {where} did not answer within {self._timeout:g} s") from None
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
            raise _Dropped(f"the MCP server at {where} cannot be reached: {explain(error)}") from None
        except (aiohttp.ClientError, ValueError) as error:
            raise ServerUnavailable(f"the MCP server at {where} cannot be asked: {explain(error)}") from None
        return _result(answer, where)


class ThinConnection:
    """One episode's URL, through the shared connections."""

    def __init__(self, client: ThinClient, url: str) -> None:
        self._client = client
        self._url = url

    async def tools(self) -> list[dict[str, Any]]:
        """The tools as the server lists them."""
        tools: list[dict[str, Any]] = []
        envelope: dict[str, Any] = dict(_ENVELOPE)
        if switch.recorder is not None:
            carry(envelope)
        params: dict[str, Any] = {"_meta": envelope}
        for _ in range(MAX_PAGES):
            try:
                result = await self._client.request(self._url, "tools/list", params)
            except RpcError as error:
                raise ServerUnavailable(f"the MCP server lists no tools: {error}") from None
            tools += result.get("tools", [])
            if not (cursor := result.get("nextCursor")):
                return tools
            params = {"cursor": cursor, "_meta": envelope}
        raise ServerUnavailable(f"the MCP server's list of tools has more than {MAX_PAGES} pages")

    async def call(self, name: str, arguments: Mapping[str, Any]) -> CallResult:
        """One tool call. What the server says of wrong names or arguments is the policy's to read."""
        meta = {**_ENVELOPE, meta_keys.IDEMPOTENCY: secrets.token_hex(16)}
        if switch.recorder is not None:
            carry(meta)
        params = {"name": name, "arguments": arguments, "_meta": meta}
        try:
            result = await self._client.request(self._url, "tools/call", params, name)
        except RpcError as error:
            return call_refused(error.code, str(error))
        return call_answered(result.get("content"), result.get("isError"), result.get("_meta"))

    async def aclose(self) -> None:
        """The connections stay open for other episodes."""


class RpcError(Exception):
    """The server's JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Dropped(Exception):
    """The connection failed; the request may be sent once more."""


def call_answered(content: Any, is_error: Any, meta: Any) -> CallResult:
    """The result of a call, as MCP words it."""
    blocks = content if isinstance(content, list) else []
    texts = [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
    done = isinstance(meta, Mapping) and meta.get(meta_keys.DONE) is True
    return CallResult("\n".join(texts), is_error is True, done)


def call_refused(code: int, message: str) -> CallResult:
    """A JSON-RPC error as the policy's to read, where it says that the call itself was wrong.

    Raises:
        ServerUnavailable: it says something else.
    """
    if code != _INVALID_PARAMS:
        raise ServerUnavailable(f"the MCP server refused the call: {message} ({code})")
    return CallResult(message, is_error=True)


def header_value(text: str) -> str:
    """``text`` as the value of an MCP header: in base64 where HTTP would not carry it as it is."""
    if _PLAIN.fullmatch(text) and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


async def _all(content: aiohttp.StreamReader, where: str) -> bytes:
    chunks, size = [], 0
    async for chunk in content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_ANSWER:
            raise ServerUnavailable(f"the answer of the MCP server at {where} is over {MAX_ANSWER} bytes")
    return b"".join(chunks)


async def _event(content: aiohttp.StreamReader, request_id: int, where: str) -> Any:
    """The answer to ``request_id`` in a stream of events; notifications before it are passed over."""
    data: list[bytes] = []
    rest, size = b"", 0
    async for chunk in content.iter_any():
        size += len(chunk)
        if size > MAX_ANSWER:
            raise ServerUnavailable(f"the answer of the MCP server at {where} is over {MAX_ANSWER} bytes")
        *lines, rest = (rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line:
                text, data = b"\n".join(data), []
                message = _loaded(text, 200, where) if text else None
                if isinstance(message, dict) and message.get("id") == request_id and "method" not in message:
                    return message
    raise _Dropped(f"the MCP server at {where} ended its answer before it was whole")


def _loaded(body: bytes, status: int, where: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        shown = body[:120].decode(errors="replace").strip() or "nothing"
        text = f"{where} is no MCP server of ours, or its episode is unknown: it answers {status}, {shown!r}"
        raise ServerUnavailable(text) from None


def _result(answer: Any, where: str) -> Any:
    if isinstance(answer, dict) and isinstance(answer.get("result"), dict):
        return answer["result"]
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict):
        code = error.get("code")
        raise RpcError(code if isinstance(code, int) else 0, str(error.get("message", "")))
    raise ServerUnavailable(f"the MCP server at {where} answers what is no JSON-RPC: {str(answer)[:120]}")


def _where(url: str) -> str:
    """The server's address, without the path: an episode's token is in it."""
    return "/".join(url.split("/", 3)[:3])
