"""The load: keep-alive connections that send prepared ``tools/call`` requests and read whole answers, nothing more."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import psutil

VERSION = "2026-07-28"


@dataclass(frozen=True)
class Load:
    """What a server spent on ``calls`` calls: CPU microseconds a call, and calls per wall second (noisy)."""

    calls: int
    cpu_microseconds: float
    calls_per_second: float


def request(url: str, number: int) -> bytes:
    """One 2026-07-28 ``tools/call`` as bytes."""
    parts = urlsplit(url)
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": number,
            "method": "tools/call",
            "params": {
                "name": "add",
                "arguments": {"number": 1},
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": VERSION,
                    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
                    "io.modelcontextprotocol/clientCapabilities": {},
                },
            },
        },
        separators=(",", ":"),
    ).encode()
    head = (
        f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {VERSION}\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: add\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, message: bytes) -> bytes:
    """Send one request and read its whole answer, by length or by chunks."""
    writer.write(message)
    head = await reader.readuntil(b"\r\n\r\n")
    lower = head.lower()
    if not lower.startswith(b"http/1.1 200"):
        raise RuntimeError(head.decode(errors="replace").splitlines()[0])
    if b"content-length:" in lower:
        length = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
        return await reader.readexactly(length)
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return body


async def drive(urls: list[str], calls: int) -> None:
    """``calls`` calls in all over one connection for each URL."""
    each = calls // len(urls)

    async def connection(url: str) -> None:
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        message = request(url, 1)
        for _ in range(each):
            answer = await exchange(reader, writer, message)
            if b"The sum is" not in answer:
                raise RuntimeError(f"not the tool's answer: {answer[:200]!r}")
        writer.close()

    await asyncio.gather(*(connection(url) for url in urls))


class Server:
    """One server process, up and warm, that can be loaded again and again."""

    def __init__(self, kind: str, warm: int) -> None:
        command = [sys.executable, "-m", "tests.bench.servers", kind]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the {kind} server did not start")
        self.urls: list[str] = json.loads(line)
        asyncio.run(drive(self.urls, warm))

    def measure(self, calls: int) -> Load:
        """Load it with about ``calls`` calls, and read its CPU time from the system."""
        process = psutil.Process(self._process.pid)
        before = process.cpu_times()
        started = time.monotonic()
        asyncio.run(drive(self.urls, calls))
        seconds = time.monotonic() - started
        after = process.cpu_times()
        made = calls // len(self.urls) * len(self.urls)
        return Load(made, (after.user + after.system - before.user - before.system) / made * 1e6, made / seconds)

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.terminate()
        self._process.wait(10)
