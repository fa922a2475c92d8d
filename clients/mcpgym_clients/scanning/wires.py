"""A player's side of MCP, in both protocol eras and over both transports, that keeps every byte it is answered."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mcpgym.errors import ServerUnavailable
from mcpgym_clients.scanning.raw_http import PATIENCE, Address, send
from mcpgym_clients.scanning.record import Exchange, Recording

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
_JSON = "application/json, text/event-stream"
_CLIENT = {"name": "mcpgym-scan", "version": "1"}
_PLAIN = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")

STARTING = 40.0
"""Seconds to wait for the first answer of a process, which has to start."""
_PLACE = re.compile(r"\{[^{}]*\}")
_PAGES = 20

_OF_THE_MOMENT = frozenset({"date", "mcp-session-id", "content-length"})
"""Headers that differ between two equal plays: a request's number is in its answer, and so in its length."""

Result = dict[str, Any]


class Wire(Protocol):
    """One connection of a player, which records under ``channel`` for ``owner``."""

    channel: str
    owner: str
    era: str
    head: str
    """The headers of the last answer but for its date; empty where the transport has none."""

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Result:
        """The JSON-RPC answer to one request, whole: with ``result`` or ``error``; empty where there was none."""
        ...

    async def notify(self, method: str) -> None:
        """Send a notification."""
        ...


def envelope() -> dict[str, Any]:
    """What every request of the 2026-07-28 era says of its client."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": _CLIENT,
        "io.modelcontextprotocol/clientCapabilities": {},
    }


def message(method: str, params: Mapping[str, Any] | None, number: Any, era: str) -> dict[str, Any]:
    """One JSON-RPC request."""
    given = dict(params or {})
    if era == MODERN:
        given["_meta"] = {**envelope(), **given.get("_meta", {})}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": given}


def mcp_headers(method: str, params: Mapping[str, Any] | None, era: str, accept: str = _JSON) -> dict[str, str]:
    """The headers of one MCP request over HTTP."""
    headers = {"Content-Type": "application/json", "Accept": accept, "MCP-Protocol-Version": era}
    if era == MODERN:
        headers["Mcp-Method"] = header_value(method)
        named = (params or {}).get("name", (params or {}).get("uri"))
        if isinstance(named, str):
            headers["Mcp-Name"] = header_value(named)
    return headers


def header_value(text: str) -> str:
    """``text`` as a header carries it."""
    if _PLAIN.fullmatch(text) and not text.startswith("=?"):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'replace')).decode()}?="


class HttpWire:
    """MCP over HTTP. ``accept`` other than the usual takes a request past a server's short cuts."""

    def __init__(
        self, recording: Recording, channel: str, address: Address, era: str, *, owner: str = "", accept: str = _JSON
    ) -> None:
        self.channel, self.owner, self.era = channel, owner, era
        self._recording, self._address, self._accept = recording, address, accept
        self.head = ""
        self._number = 0
        self._session: str | None = None

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Result:
        """See :class:`Wire`."""
        self._number += 1
        body = encoded(message(method, params, self._number, self.era))
        headers = mcp_headers(method, params, self.era, self._accept)
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        answer = await send(self._address, headers=headers, body=body)
        self._session = answer.headers.get("mcp-session-id", self._session)
        told = {**answer.headers, "status": str(answer.status)}
        self.head = "\n".join(f"{name}: {value}" for name, value in sorted(told.items()) if name not in _OF_THE_MOMENT)
        asked = described(method, params)
        self._recording.add(Exchange(self.channel, asked, answer.raw, self.owner, body))
        return first_answer(answer.body, self._number)

    async def notify(self, method: str) -> None:
        """Send a notification, to which nothing is answered but that it came."""
        body = encoded({"jsonrpc": "2.0", "method": method})
        headers = mcp_headers(method, {}, self.era, self._accept)
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        answer = await send(self._address, headers=headers, body=body)
        self._recording.add(Exchange(self.channel, method, answer.raw, self.owner, body))


class StdioWire:
    """MCP over the standard streams of a process that runs already."""

    def __init__(
        self, recording: Recording, channel: str, process: asyncio.subprocess.Process, era: str, *, owner: str = ""
    ) -> None:
        self.channel, self.owner, self.era = channel, owner, era
        self._recording, self._process = recording, process
        self.head = ""
        self._number = 0

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> Result:
        """See :class:`Wire`. Everything that comes before the answer is recorded with it."""
        self._number += 1
        said = encoded(message(method, params, self._number, self.era))
        asked = described(method, params)
        await self._write(said)
        reader = self._process.stdout
        assert reader is not None
        with contextlib.suppress(TimeoutError, ValueError):
            async with asyncio.timeout(PATIENCE if self._number > 1 else STARTING):
                while line := await reader.readline():
                    self._recording.add(Exchange(self.channel, asked, line, self.owner, said))
                    if found := first_answer(line, self._number):
                        return found
        return {}

    async def notify(self, method: str) -> None:
        """Send a notification, to which nothing is answered."""
        await self._write(encoded({"jsonrpc": "2.0", "method": method}))

    async def _write(self, line: bytes) -> None:
        writer = self._process.stdin
        assert writer is not None
        try:
            writer.write(line + b"\n")
            await writer.drain()
        except OSError as error:
            raise ServerUnavailable(f"the stdio server has ended: {error}") from None


async def greet(wire: Wire) -> None:
    """Begin, as clients of this era do."""
    if wire.era == MODERN:
        await wire.request("server/discover")
        return
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _CLIENT}
    await wire.request("initialize", params)
    await wire.notify("notifications/initialized")


async def survey(wire: Wire, uris: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Ask for all that a server says of itself: tools, prompts, resources; the tools it lists.

    ``uris`` are resources to read besides those it lists.
    """
    await greet(wire)
    await wire.request("ping")
    tools = await _listed(wire, "tools/list", "tools")
    for prompt in (await _listed(wire, "prompts/list", "prompts"))[:20]:
        await wire.request("prompts/get", {"name": prompt.get("name", "")})
        if named := [str(item.get("name", "")) for item in _list(prompt, "arguments")]:
            await wire.request("prompts/get", {"name": prompt.get("name", ""), "arguments": dict.fromkeys(named, "1")})
    found = [item.get("uri") for item in await _listed(wire, "resources/list", "resources")]
    templates = await _listed(wire, "resources/templates/list", "resourceTemplates")
    filled = [_PLACE.sub("1", str(item.get("uriTemplate", ""))) for item in templates[:20]]
    for uri in [*found[:20], *filled, *uris]:
        if isinstance(uri, str):
            await wire.request("resources/read", {"uri": uri})
    reference = {"ref": {"type": "ref/prompt", "name": "task"}, "argument": {"name": "task", "value": ""}}
    await wire.request("completion/complete", reference)
    await wire.request("logging/setLevel", {"level": "debug"})
    return tools


async def _listed(wire: Wire, method: str, name: str) -> list[dict[str, Any]]:
    """What a server lists, page after page."""
    found: list[dict[str, Any]] = []
    cursor: Any = None
    for _ in range(_PAGES):
        result = (await wire.request(method, {"cursor": cursor} if cursor else None)).get("result")
        found += _list(result, name)
        cursor = result.get("nextCursor") if isinstance(result, dict) else None
        if not isinstance(cursor, str) or not cursor:
            break
    return found


async def call(wire: Wire, name: str, arguments: Any, meta: Mapping[str, Any] | None = None) -> Result:
    """One tool call; the whole answer."""
    params = {"name": name, "arguments": arguments}
    return await wire.request("tools/call", {**params, "_meta": dict(meta)} if meta else params)


def text_of(answer: Mapping[str, Any]) -> str:
    """What a policy reads of an answer to a call."""
    result = answer.get("result")
    if not isinstance(result, dict):
        error = answer.get("error")
        return str(error.get("message", "")) if isinstance(error, dict) else ""
    blocks = _list(result, "content")
    return "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


def is_error(answer: Mapping[str, Any]) -> bool:
    """Whether a call was refused, by the tool or by the server."""
    result = answer.get("result")
    return not isinstance(result, dict) or result.get("isError") is True


def encoded(value: Any) -> bytes:
    """``value`` as JSON; what JSON does not know is written as Python would."""
    return json.dumps(value, separators=(",", ":"), default=repr).encode()


def first_answer(body: bytes, number: Any) -> Result:
    """The JSON-RPC answer with this id, in JSON or a stream of events; empty where there is none."""
    for line in body.splitlines():
        line = line.strip().removeprefix(b"data:").strip()
        if not line.startswith(b"{"):
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "method" not in found and (found.get("id") == number or "error" in found):
            return found
    return {}


def described(method: str, params: Mapping[str, Any] | None) -> str:
    """A request in a few words."""
    if not params:
        return method
    named = params.get("name", params.get("uri", ""))
    return f"{method} {str(named)[:80]}".rstrip()


def _list(result: Any, name: str) -> list[dict[str, Any]]:
    found = result.get(name) if isinstance(result, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
