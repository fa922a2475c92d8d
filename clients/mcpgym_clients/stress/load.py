"""Load: kept connections that send prepared requests and read whole answers, as cheaply as asyncio allows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from mcpgym_clients.doctor.wire import MODERN_VERSION, Era, encode, message
from mcpgym_rl.mcp_thin import header_value

LARGEST = 32 * 1024 * 1024
"""Bytes of one answer that are read."""
ANSWER_SECONDS = 30.0
OPENING_SECONDS = 10.0


class NoAnswer(Exception):
    """A request got no whole HTTP answer; the text says what happened instead."""


@dataclass(slots=True)
class Tally:
    """What a stretch of load did. ``seconds``: of each call, in order; ``refused``: answered with a tool's error;
    ``errors``: what else went wrong, in words, with how often; ``wall`` and ``cpu``: seconds of the whole stretch.
    """

    calls: int = 0
    episodes: int = 0
    refused: int = 0
    seconds: list[float] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)
    wall: float = 0.0
    cpu: float | None = None

    def failed(self, words: str) -> None:
        """Count an error."""
        words = words[:200]
        if words in self.errors or len(self.errors) < 20:
            self.errors[words] = self.errors.get(words, 0) + 1
        else:
            self.errors["further ones"] = self.errors.get("further ones", 0) + 1


class Pipe:
    """One kept connection to a URL."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._secure else 80)
        self._head = b""
        self._answering = False
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Send one request; the status and the body of its answer.

        Raises:
            NoAnswer: there was none, or none that can be read.
        """
        kept = self._writer is not None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                try:
                    return await self._exchange(request)
                except (asyncio.IncompleteReadError, ConnectionError):
                    if not kept or self._answering:
                        raise
                    self.close()  # it had been idle for too long: every HTTP client asks again then
                    return await self._exchange(request)
        except TimeoutError:
            problem = f"no answer within {ANSWER_SECONDS:g} s"
        except asyncio.IncompleteReadError:
            problem = "the connection closed in mid-answer"
        except (OSError, ValueError, asyncio.LimitOverrunError) as error:
            problem = f"{type(error).__name__}: {error}"
        self.close()
        raise NoAnswer(problem)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the last answer, by their names in lower case."""
        lines = self._head.decode("latin-1").split("\r\n")[1:]
        pairs = (line.partition(":") for line in lines if line)
        return {name.strip().lower(): value.strip() for name, _, value in pairs}

    def close(self) -> None:
        """Disconnect."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def _exchange(self, request: bytes) -> tuple[int, bytes]:
        if self._writer is None or self._reader is None:
            async with asyncio.timeout(OPENING_SECONDS):
                self._reader, self._writer = await asyncio.open_connection(
                    self._host, self._port, ssl=self._secure or None, limit=1 << 20
                )
        reader, writer = self._reader, self._writer
        self._answering = False
        writer.write(request)
        self._head = await reader.readuntil(b"\r\n\r\n")
        self._answering = True
        head = self._head.lower()
        status = int(head[9:12])
        if (at := head.find(b"\r\ncontent-length:")) >= 0:
            length = int(head[at + 17 : head.index(b"\r\n", at + 2)])
            if length > LARGEST:
                raise ValueError(f"an answer of {length} bytes")
            body = await reader.readexactly(length) if length else b""
        elif b"\r\ntransfer-encoding: chunked" in head:
            body = await self._chunks(reader)
        else:
            body = b""
        if b"\r\nconnection: close" in head:
            self.close()
        return status, body

    async def _chunks(self, reader: asyncio.StreamReader) -> bytes:
        parts, whole = [], 0
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            whole += size
            if whole > LARGEST:
                raise ValueError(f"an answer of more than {LARGEST} bytes")
            parts.append((await reader.readexactly(size + 2))[:-2])
        await reader.readexactly(2)
        return b"".join(parts)


def prepared(
    url: str,
    era: Era,
    method: str,
    params: Mapping[str, Any],
    *,
    session: str | None = None,
    version: str = MODERN_VERSION,
    headers: Mapping[str, str] | None = None,
    verb: str = "POST",
    number: int = 1,
) -> bytes:
    """One MCP request as the bytes of an HTTP request."""
    parts = urlsplit(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    body = encode(message(era, number, method, params)) if verb == "POST" else b""
    if method.startswith("notifications/"):
        body = encode({"jsonrpc": "2.0", "method": method, "params": dict(params)})
    lines = [
        f"{verb} {path} HTTP/1.1",
        f"Host: {parts.netloc.rpartition('@')[2]}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(body)}",
    ]
    if era is Era.MODERN or session is not None:
        lines.append(f"MCP-Protocol-Version: {version}")
    if era is Era.MODERN:
        lines.append(f"Mcp-Method: {method}")
        if isinstance(name := params.get("name"), str):
            lines.append(f"Mcp-Name: {header_value(name)}")
    if session is not None:
        lines.append(f"Mcp-Session-Id: {session}")
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace") + body


async def timed(pipe: Pipe, request: bytes, tally: Tally) -> Mapping[str, Any] | None:
    """One tool call, counted; its result, or None where it has none."""
    started = time.perf_counter()
    try:
        status, body = await pipe.exchange(request)
    except NoAnswer as error:
        tally.failed(str(error))
        return None
    tally.seconds.append(time.perf_counter() - started)
    tally.calls += 1
    found = read_answer(body)
    if isinstance(result := found.get("result"), Mapping):
        tally.refused += result.get("isError") is True
        return result
    refusal = found.get("error")
    words = refusal.get("message") if isinstance(refusal, Mapping) else "no JSON-RPC answer"
    tally.failed(f"HTTP {status}: {words}")
    return None


def read_answer(body: bytes) -> Mapping[str, Any]:
    """The JSON-RPC answer of a body, plain or a stream of events; empty where there is none."""
    texts = [body]
    if not body.startswith(b"{"):
        texts = [line[5:] for line in body.splitlines() if line.startswith(b"data:")]
    for text in texts:
        with contextlib.suppress(ValueError, RecursionError):
            found = json.loads(text)
            if isinstance(found, dict) and ("result" in found or "error" in found):
                return found
    return {}
