"""Both listeners bound what one connection may send beside a body, and how long a request may take to arrive."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import pytest
from control_toys import served

from mcpgym import connections

ASK = b"GET /control/v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n"
HEAD = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


def both(act: Callable[[str, int], Awaitable[None]]) -> None:
    async def run() -> None:
        async with served(control_port=0) as (server, _):
            for url in (server.url, server.control_url):
                parts = urlsplit(url)
                async with asyncio.timeout(20):
                    await act(str(parts.hostname), int(parts.port or 0))

    asyncio.run(run())


async def said(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b"reset"


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"GET /", b"a" * 65_536),
        (HEAD + b"x: ", b"a" * 65_536),
        (HEAD, b"x: y\r\n" * 10_000),
        (CHUNKED + b"2\r\n{}\r\n0\r\n", b"x: y\r\n" * 10_000),
        (CHUNKED + b"2;", b"a" * 65_536),
    ],
    ids=["line", "header", "headers", "trailers", "chunk extension"],
)
def test_what_a_request_has_beside_its_body_is_bounded(begin: bytes, more: bytes) -> None:
    async def act(host: str, port: int) -> None:
        _, writer = await asyncio.open_connection(host, port)
        sent = 0
        try:
            writer.write(begin)
            while sent < 64 * 1024 * 1024:
                writer.write(more)
                await writer.drain()
                sent += len(more)
        except ConnectionError:
            pass
        assert sent < 64 * 1024 * 1024, "a connection took 64 MB of it"
        writer.close()

    both(act)


def test_a_large_head_is_told_so_and_one_of_32_kb_is_fine() -> None:
    async def act(host: str, port: int) -> None:
        for size, end, statuses in ((32_000, b"\r\n\r\n", (b"200", b"404")), (80_000, b"", (b"431",))):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(ASK[:-2] + b"x: " + b"a" * size + end)
            line = await reader.readline()
            assert line.split()[1] in statuses, line
            writer.close()

    both(act)


def test_requests_that_never_arrive_do_not_hold_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ARRIVE_SECONDS", 0.1)
    monkeypatch.setattr(connections, "LAST_LOOK_SECONDS", 0.1)

    async def act(host: str, port: int) -> None:
        for sent in (b"", b"\r\n", ASK[:20], HEAD + b"content-length: 9\r\n\r\n{", ASK + b"GET /"):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(sent)
            await said(reader)  # ends only when the server closes
            writer.close()

    both(act)


def test_a_connection_is_kept_while_its_requests_arrive_and_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ARRIVE_SECONDS", 0.2)
    monkeypatch.setattr(connections, "LAST_LOOK_SECONDS", 0.1)

    async def act(host: str, port: int) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        for pause in (0.0, 0.5, 0.0):
            for part in (ASK[:9], ASK[9:]):
                writer.write(part)
                await asyncio.sleep(0.05)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 ")
            await reader.readexactly(int(re.findall(rb"content-length: (\d+)", head)[0]))
            await asyncio.sleep(pause)  # idle between requests: how long that may last is uvicorn's keep-alive
        writer.close()

    both(act)
