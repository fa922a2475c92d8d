"""A small MCP server written by hand, well or with one fault, for the doctor to examine.

It is served in the same process, or in one of its own: ``python doctor_toys.py FAULT`` prints the URL.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from mmap import mmap
from pathlib import Path
from typing import Any

from mcpgym.background import HttpServer
from mcpgym.control_plane.listeners import listen_tcp
from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.examination import examine
from mcpgym_clients.doctor.findings import Examination
from mcpgym_clients.doctor.subjects import HttpSubject

MODERN = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
TOOL: dict[str, Any] = {
    "name": "add",
    "description": "Add a number; answers the sum so far.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "number": {"type": "integer", "description": "What to add."},
            "note": {"type": "string", "description": "A word with it.", "default": "none"},
        },
        "required": ["number"],
        "additionalProperties": False,
    },
}


class Toy:
    """An ASGI application. ``fault`` is what is wrong with it; none: nothing is, and each path has its own sum."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.sums: defaultdict[str, int] = defaultdict(int)
        self.notes: list[str] = []
        self.sessions: set[str] = set()
        self.answers: dict[tuple[str, str], Any] = {}
        self.lists = 0
        self.kept: list[Any] = []
        self.dead = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        body, whole = await _body(receive)
        if not whole or self.dead:
            self.dead = self.dead or self.fault == "dies-with-client"
            return
        if self.fault == "speaks-nothing":
            return await _send(send, 404, {"detail": "Not Found"})
        if self.fault != "any-host" and ("evil" in headers.get("host", "") + headers.get("origin", "")):
            return await _send(send, 403, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no"}})
        status, answer, session = await self._answer(scope, headers, body, receive)
        await _send(send, status, answer, session, self.fault == "closes")

    async def _answer(
        self, scope: Any, headers: dict[str, str], body: bytes, receive: Any
    ) -> tuple[int, Any, str | None]:
        if scope["method"] == "DELETE":
            self.sessions.discard(headers.get("mcp-session-id", ""))
            return 200, None, None
        try:
            asked = json.loads(body)
        except ValueError:
            if self.fault == "dies-of-junk":
                self.dead = True
            return 400, _error(None, -32700, "this is no JSON"), None
        number, method = asked.get("id"), asked.get("method")
        params = asked.get("params") or {}
        modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
        if number is None:
            return 202, None, None
        if method == "initialize":
            if self.fault == "no-handshake":
                return 400, _error(number, -32601, "not here"), None
            return self._initialize(number, params)
        if modern and self.fault == "no-modern":
            return 400, _error(number, -32601, "not here"), None
        version = params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion")
        if modern and version != MODERN and self.fault != "any-version":
            return 400, {**_error(number, -32022, "unsupported"), "data": {"supported": [MODERN]}}, None
        session = headers.get("mcp-session-id")
        if not modern and session is not None and session not in self.sessions and self.fault != "any-session":
            return 404, _error(number, -32600, "no such session"), None
        match method:
            case "server/discover":
                return (
                    200,
                    _result(number, {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, **_DONE}),
                    None,
                )
            case "ping":
                return 200, _result(number, {}), None
            case "tools/list":
                return 200, _result(number, {"tools": self._tools(modern), **_DONE}), None
            case "tools/call":
                asking = asyncio.ensure_future(self._call(scope["path"], session, modern, headers, params))
                gone = asyncio.ensure_future(receive())
                await asyncio.wait({asking, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not asking.done() and self.fault == "dies-with-client":
                    self.dead = True
                gone.cancel()
                status, answer = await asking
                return status, {**answer, "id": number, "jsonrpc": "2.0"}, None
        return 200, _error(number, -32601, f"there is no {method}"), None

    def _initialize(self, number: Any, params: dict[str, Any]) -> tuple[int, Any, str]:
        session = secrets.token_hex(16)
        self.sessions.add(session)
        if self.fault == "leaks-memory":
            self.kept.append(mmap(-1, 100_000))  # of its own: the heap may have as much that nobody uses
            self.kept[-1].write(bytes(100_000))
        if self.fault == "leaks-files":
            self.kept.append(Path(__file__).open())  # noqa: SIM115
        wanted = params.get("protocolVersion")
        version = wanted if wanted in HANDSHAKE else HANDSHAKE[0]
        info = {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "toy", "version": "1"},
        }
        return 200, _result(number, info), session

    def _tools(self, modern: bool) -> list[dict[str, Any]]:
        tool = json.loads(json.dumps(TOOL))
        self.lists += 1
        match self.fault:
            case "eras-differ" if modern:
                tool["description"] = "Something else."
            case "no-schema":
                tool["inputSchema"]["properties"]["number"]["type"] = "whole number"
            case "title":
                tool["inputSchema"]["properties"]["number"]["title"] = "Number"
            case "unstable":
                tool["description"] += f" ({self.lists})"
            case "two-of-one-name":
                return [tool, tool]
            case "unstructured" | "misfit":
                tool["outputSchema"] = {
                    "type": "object",
                    "properties": {"sum": {"type": "integer"}},
                    "required": ["sum"],
                }
            case "destructive":
                tool["annotations"] = {"destructiveHint": True}
        return [tool]

    async def _call(
        self, path: str, session: str | None, modern: bool, headers: dict[str, str], params: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        if params.get("name") != "add":
            return 200, self._refusal(f"there is no tool {params.get('name')!r}; there is add")
        given = params.get("arguments")
        if (problem := _problem(given)) and self.fault != "takes-anything":
            if self.fault == "fails-on-odd":
                return 500, {"error": {"code": -32603, "message": "oops"}}
            return 200, self._refusal(problem)
        given = given if isinstance(given, dict) else {}
        owner = {"global": "all", "sessions": session or secrets.token_hex(4)}.get(self.fault, path)
        key = (owner, headers.get("idempotency-key") or secrets.token_hex(4))
        if key in self.answers and self.fault != "makes-twice":
            return 200, self.answers[key]
        value = given.get("number")
        before = self.sums[owner]
        if self.fault == "loses":
            await asyncio.sleep(0.01)
        self.sums[owner] = before + (value if isinstance(value, int) else 0)
        if self.fault == "notes":
            self.notes.append(str(given.get("note")))
        made = self.answers[key] = {"result": self._said(self.sums[owner])}
        await asyncio.sleep(0.003)
        return 200, made

    def _said(self, total: int) -> dict[str, Any]:
        text = f"The sum is {total}." if self.fault != "notes" else f"Notes: {self.notes[-5:]}"
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": False, **_DONE}
        match self.fault:
            case "contents-differ":
                result["structuredContent"] = {"result": "secretly something else"}
            case "misfit":
                result["structuredContent"] = {"sum": "many"}
        return result

    def _refusal(self, text: str) -> dict[str, Any]:
        match self.fault:
            case "traceback":
                text = 'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in add\n' + text
            case "mute":
                text = "Internal error"
        return {"result": {"content": [{"type": "text", "text": text}], "isError": True, **_DONE}}


_DONE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def _problem(given: Any) -> str:
    if not isinstance(given, dict):
        return "add: the arguments must be an object"
    if extra := set(given) - {"number", "note"}:
        return f"add: {sorted(extra)[0]} is not a parameter"
    number = given.get("number")
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > 10**9:
        return "add: number must be an integer"
    note = given.get("note", "")
    return "" if isinstance(note, str) and len(note) < 1000 else "add: note must be a short text"


def _result(number: Any, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _error(number: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


async def _body(receive: Any) -> tuple[bytes, bool]:
    body = b""
    while True:
        part = await receive()
        if part["type"] != "http.request":
            return body, False
        body += part.get("body", b"")
        if not part.get("more_body"):
            return body, True


async def _send(send: Any, status: int, answer: Any, session: str | None = None, close: bool = False) -> None:
    body = b"" if answer is None else json.dumps(answer).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if session is not None:
        headers.append((b"mcp-session-id", session.encode()))
    if close:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def serving_toy(toy: Any) -> AsyncIterator[str]:
    """Serve an application; its base URL."""
    listener = listen_tcp("127.0.0.1", 0, "port")
    server = HttpServer(toy, listener.socket)
    await server.begin()
    try:
        yield listener.url
    finally:
        await server.end()


def examined(fault: str, *only: str, places: bool = False, **settings: Any) -> Examination:
    """The doctor's findings on a toy; ``places``: tell it of URLs with sums of their own."""

    async def work() -> Examination:
        async with serving_toy(Toy(fault)) as base:
            others = [f"{base}/place-{number}/mcp" for number in range(12)] if places else []
            return await _findings(f"{base}/mcp", others, only, settings)

    return asyncio.run(work())


def examined_apart(fault: str, *only: str, **settings: Any) -> Examination:
    """The doctor's findings on a toy in a process of its own: what is measured of that process is the toy's alone."""
    with subprocess.Popen([sys.executable, __file__, fault], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            return asyncio.run(_findings(process.stdout.readline().strip(), [], only, settings))
        finally:
            process.kill()


async def _findings(url: str, others: list[str], only: tuple[str, ...], settings: dict[str, Any]) -> Examination:
    chosen = {"quick": True, "sessions": 16, **settings}
    return await examine(Context(HttpSubject(url, {}, 3.0, others), **chosen), only)


async def _serve(fault: str) -> None:
    async with serving_toy(Toy(fault)) as base:
        print(f"{base}/mcp", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
