"""Players over stdio: the same tools as over HTTP, a clean stream, and no process that outlives its client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, StdioServerParameters
from wire_toys import text_of

from mcpgym_clients.doctor.processes import Stopwatch

TOYS = str(Path(__file__).with_name("wire_toys.py"))
GONE_WITHIN = 2.0
"""What the SDK's clients wait before they use force: seconds in which the process has a processor."""

CONSOLES = pytest.mark.parametrize(
    "console", [{"PYTHONIOENCODING": "cp1252"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
)
ERAS = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


def server(kind: str, env: dict[str, str] | None = None) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=[TOYS, kind], env=env)


@ERAS
@CONSOLES
def test_case_32_stdio_is_utf8_whatever_the_console_says(mode: str, console: dict[str, str]) -> None:
    async def main() -> None:
        async with Client(server("bound", console), mode=mode) as client:
            word = "Grüße 東京 ☃ \U0001f3b2"
            assert text_of(await client.call_tool("add", {"word": word})) == word
            assert text_of(await client.call_tool("read", {})) == word

    asyncio.run(main())


@ERAS
def test_a_bound_process_is_one_episode_with_the_tools_as_they_are(mode: str) -> None:
    async def main() -> None:
        async with Client(server("bound"), mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools][:2] == ["add", "read"]
            assert all("episode" not in tool.input_schema["properties"] for tool in tools)
            prompt = await client.get_prompt("task")
            assert [message.content.text for message in prompt.messages] == ["Be brief.", "Keep list 4 of train."]  # type: ignore[union-attr]
            assert text_of(await client.call_tool("add", {"word": "a"})) == "a"
            assert text_of(await client.call_tool("add_in_thread", {"word": "b", "seconds": 0.01})) == "a b"

    asyncio.run(main())


@ERAS
def test_an_unbound_process_plays_many_episodes_by_handle(mode: str) -> None:
    async def main() -> None:
        async with Client(server("bare"), mode=mode) as client:
            started = [text_of(await client.call_tool("start_episode", {"environment": "ledger"})) for _ in range(2)]
            one, two = (text.split("\n")[0].removeprefix("episode: ") for text in started)
            assert text_of(await client.call_tool("add", {"episode": one, "word": "a"})) == "a"
            assert text_of(await client.call_tool("add", {"episode": two, "word": "b"})) == "b"
            assert text_of(await client.call_tool("ledger_read", {"episode": one})) == "a"

    asyncio.run(main())


def begin(kind: str = "bound", **options: Any) -> subprocess.Popen[bytes]:
    as_usual = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.Popen(
        [sys.executable, TOYS, kind],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **{"env": as_usual, **options},
    )  # fmt: skip


def line(method: str, params: dict[str, Any], number: int | None = 1) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
    return json.dumps(message).encode() + b"\n"


HELLO = line(
    "initialize",
    {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
) + line("notifications/initialized", {}, None)


def greet(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(HELLO)
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    assert answer["result"]["serverInfo"]["name"] == "ledger"


def test_case_32_nothing_but_protocol_reaches_standard_output() -> None:
    process = begin()
    greet(process)
    assert process.stdin is not None
    process.stdin.write(line("tools/call", {"name": "broken", "arguments": {}}, 2))  # logs a traceback
    process.stdin.flush()
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["result"]["isError"] is True
    out, err = process.communicate(timeout=10)
    assert out == b""
    assert b"an environment prints" in err
    assert b"and so does a child" in err
    assert b"the secret is 42" in err


BUSY = {
    "idle": None,
    "an async call": {"name": "add_slowly", "arguments": {"word": "w", "seconds": 4.0}},
    "a thread that cannot be stopped": {"name": "add_in_thread", "arguments": {"word": "w", "seconds": 4.0}},
    "a tool that blocks the event loop": {"name": "freeze", "arguments": {"seconds": 6.0}},
}


@pytest.mark.flaky(reruns=1)  # it measures time
@pytest.mark.parametrize("busy", BUSY)
def test_case_10_when_stdin_closes_the_process_is_gone_in_two_seconds(busy: str) -> None:
    process = begin()
    greet(process)
    assert process.stdin is not None
    if BUSY[busy] is not None:
        process.stdin.write(line("tools/call", BUSY[busy], 2))
        process.stdin.flush()
        time.sleep(0.3)
    watch = Stopwatch([process.pid])
    process.stdin.close()
    assert asyncio.run(watch.until(lambda: process.poll() is not None, GONE_WITHIN))


@pytest.mark.flaky(reruns=1)  # it measures time
def test_case_10_when_stdin_closes_before_initialize_the_process_is_gone() -> None:
    process = begin()
    assert process.stderr is not None
    assert b"an environment prints" in process.stderr.readline()
    assert process.stdin is not None
    watch = Stopwatch([process.pid])
    process.stdin.close()
    assert asyncio.run(watch.until(lambda: process.poll() is not None, GONE_WITHIN))


def has_ended(process: psutil.Process) -> bool:
    """Whether it runs no more; its new parent may not have asked for its exit code yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


PARENT = """
import subprocess, sys, time
server = subprocess.Popen([sys.executable, {toys!r}, "bound"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
held = [server.stdin.fileno()]
sibling = subprocess.Popen(["sleep", "30"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=held)
server.stdin.write({hello!r} + {call!r})
server.stdin.flush()
server.stdout.readline()
print(server.pid, sibling.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.flaky(reruns=1)  # it measures time
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a parent's death is told to no process there")
@pytest.mark.parametrize("busy", ["idle", "a thread that cannot be stopped", "a tool that blocks the event loop"])
def test_case_10_when_the_parent_is_killed_the_process_is_gone_though_a_sibling_holds_its_stdin(busy: str) -> None:
    call = b"" if BUSY[busy] is None else line("tools/call", BUSY[busy], 2)
    script = PARENT.format(toys=TOYS, hello=HELLO, call=call)
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    server_id, sibling_id = map(int, parent.stdout.readline().split())
    running = psutil.Process(server_id)
    try:
        time.sleep(0.3)
        watch = Stopwatch([server_id])
        parent.send_signal(signal.SIGKILL)
        parent.wait(timeout=10)
        assert asyncio.run(watch.until(lambda: has_ended(running), GONE_WITHIN))
    finally:
        os.kill(sibling_id, signal.SIGKILL)
