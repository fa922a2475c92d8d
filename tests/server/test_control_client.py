"""The control plane's client when things go wrong: one sentence, within seconds, and nothing done twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from control_toys import SECRET, desk, served

from mcpgym import control_client
from mcpgym.control import Call, ControlPlane
from mcpgym.control_client import HttpControl
from mcpgym.errors import ConfigurationError, McpgymError, ServerUnavailable
from mcpgym.serving import serving

HERE = Path(__file__).parent
pytestmark = pytest.mark.flaky(reruns=1)  # nearly all of these measure how soon something is told
SERVE = """
import sys
sys.path.insert(0, sys.argv[1])
from control_toys import SECRET, desk
from mcpgym.serving import run_server
sys.exit(run_server(desk(), control_socket=sys.argv[2], secret=SECRET))
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its control address."""
    path = tmp_path / "c.sock"
    command = [sys.executable, "-c", SERVE, str(HERE), str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as made:
        assert made.stderr is not None
        while (line := made.stderr.readline()) and "Stop with" not in line:
            pass
        assert line, "the server did not start"
        yield made, f"unix:{path}"
        with contextlib.suppress(ProcessLookupError):
            made.kill()


async def fails(work: Any, *says: str, within: float) -> McpgymError:
    started = time.monotonic()
    with pytest.raises(McpgymError) as error:
        await asyncio.wait_for(work, within + 20)
    assert time.monotonic() - started < within
    for words in says:
        assert words in str(error.value)
    assert "\n" not in str(error.value)
    return error.value


def test_case_13_a_server_killed_in_mid_call_is_told_within_seconds(process: tuple[Any, str]) -> None:
    server, address = process

    async def run() -> None:
        async with HttpControl(address, SECRET) as control:
            token = (await control.open("desk", split="train")).token
            calls = [
                control.step([Call(token, "wait", {"seconds": 20.0})]),
                control.step([Call(token, "work", {"seconds": 20.0, "number": 1})]),
            ]
            running = [asyncio.ensure_future(fails(call, "not available", address, within=3)) for call in calls]
            await asyncio.sleep(0.5)
            server.kill()
            for error in await asyncio.gather(*running):
                assert isinstance(error, ServerUnavailable)
            assert isinstance(await fails(control.status(token), "nothing answers", within=5), ServerUnavailable)
            assert isinstance(await fails(control.environments(), "nothing answers", within=5), ServerUnavailable)

    asyncio.run(run())


def test_case_13_a_server_that_stands_still_is_told_too(
    process: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = process
    monkeypatch.setattr(control_client, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(control_client, "ALIVE_SECONDS", 0.5)

    async def run() -> None:
        async with HttpControl(address, SECRET) as control:
            token = (await control.open("desk", split="train")).token
            (slow,) = await control.step([Call(token, "wait", {"seconds": 1.5})])
            assert slow.text == "waited", "slow is not dead"
            os.kill(server.pid, signal.SIGSTOP)
            try:
                await fails(control.status(token), "no sign of life", within=3)
            finally:
                os.kill(server.pid, signal.SIGCONT)
            assert (await control.status(token)).turns == 1

    asyncio.run(run())


def test_a_request_has_its_time_limit() -> None:
    async def run() -> None:
        async with served() as (server, _), HttpControl(server.control_url, SECRET, timeout=0.3) as control:
            token = (await control.open("desk", split="train")).token
            await fails(control.step([Call(token, "wait", {"seconds": 5.0})]), "no answer within 0.3 s", within=2)

    asyncio.run(run())


def test_the_players_url_instead_of_the_control_address_is_told_with_the_fix() -> None:
    async def run() -> None:
        async with served() as (server, _), HttpControl(server.url, SECRET) as control:
            for work in (control.environments(), control.open("desk", split="train"), control.close("x")):
                await fails(work, "no control plane", "unix:/path or http://host:port", within=2)
        for text in (f"{server.url}/mcp", f"{server.url}/e/{'0' * 32}/mcp"):
            with pytest.raises(ConfigurationError, match="unix:/path or http://host:port"):
                HttpControl(text, SECRET)

    asyncio.run(run())


@pytest.mark.parametrize("options", [{}, {"control_port": 0}])
def test_the_wrong_secret_is_told_with_the_fix_and_is_not_repeated(options: Any) -> None:
    async def run() -> None:
        async with served(**options) as (server, _), HttpControl(server.control_url, "wrong" * 5) as control:
            error = await fails(control.environments(), "MCPGYM_CONTROL_SECRET", within=2)
            assert isinstance(error, ConfigurationError)
            assert "wrong" * 5 not in str(error)

    asyncio.run(run())


@pytest.mark.parametrize("address", ["unix:/no/such.sock", "http://127.0.0.1:1"])
def test_nobody_there_is_one_sentence_within_seconds(address: str) -> None:
    async def run() -> None:
        async with HttpControl(address, SECRET) as control:
            error = await fails(control.environments(), f"the environment server at {address}", within=6)
            assert isinstance(error, ServerUnavailable)

    asyncio.run(run())


def test_a_server_that_starts_a_moment_late_is_waited_for(tmp_path: Path) -> None:
    async def run() -> int:
        from mcpgym.control_plane.listeners import listen_tcp

        probe = listen_tcp("127.0.0.1", 0, "--port")
        probe.close()
        async with HttpControl(probe.url, SECRET) as control:
            first = asyncio.ensure_future(control.open("desk", split="train"))
            await asyncio.sleep(0.3)
            async with serving(desk(), control_port=int(probe.url.rpartition(":")[2]), secret=SECRET):
                await first
                return (await control.status(first.result().token)).turns

    assert asyncio.run(run()) == 0


@contextlib.asynccontextmanager
async def breaking(count: list[str], answers: int) -> AsyncIterator[str]:
    """Something that accepts requests and hangs up in mid-answer, after ``answers`` of them were answered well."""

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            count.append(head.partition(" HTTP")[0])
            if len(count) > answers:
                body = b'{"done":false,"turns":3,"stop_reason":null}'
                writer.write(b"HTTP/1.1 200 OK\r\nmcpgym-control: v1\r\nconnection: close\r\n")
                writer.write(b"content-length: %d\r\n\r\n%s" % (len(body), body))
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(on_connection, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_only_what_changes_nothing_is_sent_again() -> None:
    async def run() -> None:
        sent: list[str] = []
        async with breaking(sent, 2) as address, HttpControl(address, SECRET) as control:
            assert (await control.status("abc")).turns == 3
        assert sent == ["GET /control/v1/episodes/abc"] * 3

        def acts(control: ControlPlane) -> list[Any]:
            return [
                control.open("desk", split="train"),
                control.step([Call("abc", "add", {"number": 1})]),
                control.respond("abc", []),
                control.score("abc"),
            ]

        for number in range(4):
            sent.clear()
            async with breaking(sent, 99) as address, HttpControl(address, SECRET) as control:
                work = acts(control)
                for index, other in enumerate(work):
                    if index != number:
                        other.close()
                await fails(work[number], "broke in mid-request", within=3)
            assert len(sent) == 1

    asyncio.run(run())


@pytest.mark.parametrize("answer", [b"hello", b"HTTP/1.1 200 OK\r\nmcpgym-control: v1\r\ncontent-length: 2\r\n\r\n[x"])
def test_what_speaks_no_http_or_no_json_is_one_sentence(answer: bytes) -> None:
    async def run() -> None:
        async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(on_connection, "127.0.0.1", 0)
        async with server:
            address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with HttpControl(address, SECRET) as control:
                error = await fails(control.score("abc"), "the environment server at", within=3)
                assert isinstance(error, ServerUnavailable)

    asyncio.run(run())


def test_environment_variables_for_proxies_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def run() -> int:
        async with served(control_port=0) as (_, control):
            return len(await control.environments())

    assert asyncio.run(run()) == 1
