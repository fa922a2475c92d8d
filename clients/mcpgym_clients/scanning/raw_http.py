"""One HTTP request at a time, byte for byte as written, and all bytes that come back: no client library in between."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from mcpgym.errors import ServerUnavailable
from mcpgym_clients.failures import UsageProblem

MAX_ANSWER = 8 * 1024 * 1024
"""Bytes of an answer that are read."""
PATIENCE = 10.0
"""Seconds to wait for an answer."""
STREAM_PATIENCE = 0.5
"""Seconds to listen to an answer that does not end (a stream of events) once it has begun."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, and the path of its MCP endpoint. With ``socket`` it is a unix socket."""

    host: str
    port: int
    path: str
    tls: bool = False
    socket: Path | None = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Headers that every request there needs, as an Authorization does."""

    @classmethod
    def of(cls, url: str) -> Address:
        """The address in an HTTP URL; ``/mcp`` where it has no path.

        Raises:
            UsageProblem: it is none.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise UsageProblem(f"{url!r} is no URL; write http://host:port/mcp") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageProblem(f"{url!r} is no URL of an MCP server; write http://host:port/mcp")
        if parts.username or parts.fragment:
            raise UsageProblem(f"{url!r}: a server's URL has neither a user nor a fragment here; leave them out")
        tls = parts.scheme == "https"
        path = parts.path if parts.path not in ("", "/") else "/mcp"
        return cls(parts.hostname, port or (443 if tls else 80), path + (f"?{parts.query}" if parts.query else ""), tls)

    @property
    def authority(self) -> str:
        """The Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine, as far as its name tells."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: ``status`` 0 where it was no HTTP (or nothing). Header names are in small letters."""

    raw: bytes
    status: int
    headers: Mapping[str, str]
    body: bytes


async def send(
    address: Address,
    *,
    method: str = "POST",
    path: str | None = None,
    headers: Mapping[str, str] | list[tuple[str, str]] | None = None,
    body: bytes = b"",
    patience: float = PATIENCE,
) -> Answer:
    """Send one request on a connection of its own, and read until the server closes it.

    ``Host``, ``Content-Length`` and ``Connection: close`` are added where ``headers`` does not have them.

    Raises:
        ServerUnavailable: nobody listens there, or a whole answer never came.
    """
    given = list(headers.items()) if isinstance(headers, Mapping) else list(headers or [])
    names = {name.lower() for name, _ in given}
    defaults = [*address.headers, ("Host", address.authority), ("Connection", "close")]
    if body or method not in ("GET", "HEAD", "OPTIONS", "TRACE"):
        defaults.append(("Content-Length", str(len(body))))
    lines = [f"{method} {address.path if path is None else path} HTTP/1.1"]
    lines += [
        f"{name}: {value}" for name, value in [*defaults, *given] if (name, value) in given or name.lower() not in names
    ]
    head = "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n"
    try:
        async with asyncio.timeout(patience):
            reader, writer = await _connect(address)
    except (OSError, TimeoutError) as error:
        where = address.socket or address.authority
        raise ServerUnavailable(
            f"{where} cannot be reached: {str(error) or 'no answer'}; is the server running?"
        ) from None
    try:
        raw = b""
        with contextlib.suppress(OSError):  # a server may refuse and close before it has read all
            writer.write(head + body)
            await writer.drain()
        with contextlib.suppress(OSError, TimeoutError):
            while len(raw) < MAX_ANSWER:
                async with asyncio.timeout(patience if not _streams(raw) else STREAM_PATIENCE):
                    part = await reader.read(65536)
                if not part:
                    break
                raw += part
    finally:
        writer.close()
    return _read(raw)


async def _connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if address.socket is not None:
        return await asyncio.open_unix_connection(address.socket)
    context = ssl.create_default_context() if address.tls else None
    return await asyncio.open_connection(address.host, address.port, ssl=context)


def _streams(raw: bytes) -> bool:
    """Whether what came so far is the beginning of an answer that need not end."""
    head, whole, _ = raw.partition(b"\r\n\r\n")
    return bool(whole) and b"text/event-stream" in head.lower()


def _read(raw: bytes) -> Answer:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    status = int(words[1]) if len(words) > 1 and words[0].startswith("HTTP/") and words[1].isdigit() else 0
    headers = {}
    for line in lines:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = _unchunked(body)
        raw = head + b"\r\n\r\n" + body
    return Answer(raw, status, headers, body)


def _unchunked(body: bytes) -> bytes:
    parts, rest = [], body
    while rest:
        size, found, rest = rest.partition(b"\r\n")
        try:
            length = int(size.split(b";")[0], 16)
        except ValueError:
            length = 0
        if not found or not length:
            break
        parts.append(rest[:length])
        rest = rest[length + 2 :]
    return b"".join(parts)
