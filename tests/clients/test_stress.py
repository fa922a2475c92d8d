"""``mcpgym stress``: what is counted was really answered, and what went wrong is said."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from doctor_toys import Toy, serving_toy
from hypothesis import given
from hypothesis import strategies as st

from mcpgym_clients.doctor.wire import Era
from mcpgym_clients.stress.figures import Figures, latencies
from mcpgym_clients.stress.load import NoAnswer, Pipe, Tally, prepared, read_answer, timed
from mcpgym_clients.stress.running import StressOptions, loaded


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mcpgym_clients", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


@pytest.mark.slow
def test_an_environment_is_loaded_beside_the_bare_endpoint(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    done = run("stress", "tic-tac-toe", "--seconds", "1", "--concurrency", "4", "--json", str(file))
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    assert figures["calls"] > 10
    assert figures["episodes"] > 0
    assert figures["errors"] == {}
    assert figures["cpu_microseconds_per_call"] > 0
    assert figures["ratio_to_bare"] > 0
    assert 0 < figures["milliseconds"]["p50"] <= figures["milliseconds"]["p90"] <= figures["milliseconds"]["p99"]
    assert figures["server_after"]["memory_bytes"] > 2**20
    assert "bare ASGI" in done.stdout


def test_sessions_of_any_server_are_loaded_and_every_call_arrives() -> None:
    async def work() -> tuple[Figures, int]:
        toy = Toy("global")
        async with serving_toy(toy) as base:
            figures = await loaded(
                StressOptions(f"{base}/mcp", concurrency=3, seconds=0.6, calls=['add={"number": 1}'])
            )
        return figures, toy.sums["all"]

    figures, total = asyncio.run(work())
    counted = sum(tally.calls for tally in (*figures.calls, *figures.whole))
    assert figures.unit == "session"
    assert figures.errors == {}
    assert 0 < counted < total, "each call counted was made; those that warm up and find out are not counted"
    assert total - counted < 100


def test_errors_under_load_are_counted_in_words() -> None:
    async def work() -> Tally:
        async with serving_toy(Toy("fails-on-odd")) as base:
            pipe, tally = Pipe(f"{base}/mcp"), Tally()
            params = {"name": "add", "arguments": {"number": "four"}}
            for _ in range(3):
                await timed(pipe, prepared(f"{base}/mcp", Era.MODERN, "tools/call", params), tally)
            pipe.close()
            return tally

    assert asyncio.run(work()).errors == {"HTTP 500: oops": 3}


def test_a_connection_that_was_idle_for_too_long_is_opened_again() -> None:
    async def work() -> tuple[int, int]:
        connections = 0

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal connections
            connections += 1
            await reader.readuntil(b"}")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            pipe = Pipe(f"http://127.0.0.1:{port}/mcp")
            answered = 0
            for _ in range(3):
                answered += (await pipe.exchange(b"POST / HTTP/1.1\r\n\r\n{}"))[0] == 200
                await asyncio.sleep(0.05)
        return answered, connections

    assert asyncio.run(work()) == (3, 3)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"",
    ],
)
def test_an_answer_that_is_none_is_said(answer: bytes) -> None:
    async def work() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"}")
            writer.write(answer)
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            await Pipe(f"http://127.0.0.1:{port}/").exchange(b"POST / HTTP/1.1\r\n\r\n{}")

    with pytest.raises(NoAnswer):
        asyncio.run(work())


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=5), max_size=3), st.booleans())
def test_answers_are_read_plain_and_as_events(result: dict[str, Any], events: bool) -> None:
    answer = {"jsonrpc": "2.0", "id": 1, "result": result}
    body = json.dumps(answer).encode()
    note = b'event: message\ndata: {"jsonrpc": "2.0", "method": "notifications/message"}\n\n'
    assert read_answer(note + b"data: " + body + b"\n\n" if events else body) == answer


@given(st.lists(st.floats(0, 10), min_size=1, max_size=50))
def test_latencies_are_ordered_and_real(seconds: list[float]) -> None:
    low, middle, high = latencies([Tally(seconds=seconds)])
    assert min(seconds) * 1000 <= low <= middle <= high <= max(seconds) * 1000
    assert latencies([Tally()]) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stress", "no-such-thing"], "no installed environment"),
        (["stress", "tic-tac-toe", "--call", "play"], "--call"),
        (["stress", "http://127.0.0.1:9/mcp", "--config", "a=b"], "--config"),
        (["doctor", "no-such-program-anywhere"], "no command that can be run"),
        (["doctor", "--", "echo", "hi"], "it printed 'hi', which is no protocol"),
        (["doctor", "http://127.0.0.1:9/mcp"], "no MCP client can connect"),
        (["doctor", "http://[/mcp"], "no address of an MCP server"),
        (["doctor", "tic-tac-toe", "--only", "everything"], "no such check"),
        (["doctor", "tic-tac-toe", "--header", "a: b"], "--header"),
        (["doctor", "http://127.0.0.1:9/mcp", "--header", "secret-value"], "NAME: VALUE"),
        (["doctor", "tic-tac-toe", "--call", "play={"], "--call"),
        (["doctor", "tic-tac-toe", "--json", "/no/such/folder/report.json"], "no folder"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    from mcpgym_clients.cli import main

    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert said in error
    assert error.count("\n") == 1
    assert "secret-value" not in error
