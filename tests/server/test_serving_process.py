"""The server as a process: signals at any moment, stuck tools, kills; nothing hangs and nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from control_toys import SECRET

from mcpgym.control import Call
from mcpgym.control_client import HttpControl
from mcpgym.errors import ServerUnavailable

HERE = Path(__file__).parent
SERVE = """
import sys
sys.path.insert(0, sys.argv[1])
from control_toys import desk
from mcpgym.serving import run_server
print("begun", flush=True)
sys.exit(run_server(desk(), control_socket=sys.argv[2]))
"""


class Server:
    """A server process; ``lines`` is what it said on standard error so far."""

    def __init__(self, path: Path, secret: str | None = SECRET) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("MCPGYM_")}
        if secret is not None:
            environment["MCPGYM_CONTROL_SECRET"] = secret
        self.path = path
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(HERE), str(path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())

    def begun(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "begun\n"

    def ready(self) -> Server:
        deadline = time.monotonic() + 30
        while not any("Stop with" in line for line in self.lines):
            assert self.process.poll() is None, self.lines
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.02)
        return self

    def ends(self, within: float) -> int:
        children = psutil.Process(self.process.pid).children(recursive=True) if self.process.poll() is None else []
        code = self.process.wait(within)
        self._reader.join(5)
        assert not [child for child in children if child.is_running()]
        return code

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(10)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Any]:
    made: list[Server] = []

    def start(secret: str | None = SECRET) -> Server:
        made.append(Server(tmp_path / "c.sock", secret))
        return made[-1]

    yield start
    for server in made:
        server.kill()


async def begin(server: Server, tool: str, arguments: dict[str, Any]) -> tuple[HttpControl, asyncio.Future[Any]]:
    control = HttpControl(f"unix:{server.path}", SECRET)
    token = (await control.open("desk", split="train")).token
    call = asyncio.ensure_future(control.step([Call(token, tool, arguments)]))
    await asyncio.sleep(0.3)
    return control, call


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0), (signal.SIGHUP, 0)])
def test_a_signal_ends_it_in_order_and_leaves_nothing(servers: Any, number: int, code: int) -> None:
    server = servers().ready()
    assert server.path.exists()

    async def run() -> Any:
        control, call = await begin(server, "wait", {"seconds": 1.0})
        server.process.send_signal(number)
        (result,) = await call
        await control.aclose()
        return result

    assert asyncio.run(run()).text == "waited", "a call in flight is answered first"
    assert server.ends(within=6) == code
    assert not server.path.exists()
    assert not [line for line in server.lines if "Traceback" in line or "ERROR" in line], server.lines
    assert SECRET not in "\n".join(server.lines), "a configured secret is not shown"
    assert any("MCPGYM_CONTROL_SECRET" in line for line in server.lines)


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(6))
def test_case_11_signals_at_random_moments_never_hang_it_and_leave_nothing(servers: Any, round_: int) -> None:
    choice = random.Random(round_)
    server = servers()
    server.begun()
    time.sleep(choice.random() * 1.2)  # from before it listens to well after
    number = choice.choice([signal.SIGINT, signal.SIGTERM])
    server.process.send_signal(number)
    assert server.ends(within=10) == (130 if number == signal.SIGINT else 0), server.lines
    assert not server.path.exists()
    assert not [line for line in server.lines if "Traceback" in line], server.lines


def test_a_tool_stuck_in_a_thread_does_not_keep_it(servers: Any) -> None:
    server = servers().ready()

    async def run() -> None:
        control, call = await begin(server, "work", {"seconds": 60.0, "number": 1})
        server.process.send_signal(signal.SIGTERM)
        await asyncio.wait({call}, timeout=12)
        assert call.done(), "its caller was left hanging"
        with contextlib.suppress(ServerUnavailable):
            assert call.result()[0].is_error
        await control.aclose()

    asyncio.run(run())
    assert server.ends(within=6) == 0
    assert not server.path.exists()


@pytest.mark.flaky(reruns=1)  # it measures time
@pytest.mark.parametrize("signals", [2, 3])
def test_a_second_signal_ends_it_at_once_even_with_the_loop_blocked(servers: Any, signals: int) -> None:
    server = servers().ready()

    async def run() -> None:
        control, call = await begin(server, "block", {"seconds": 60.0})
        for _ in range(signals):
            server.process.send_signal(signal.SIGINT)
            await asyncio.sleep(0.2)
        with pytest.raises(ServerUnavailable):
            await asyncio.wait_for(call, 5)
        await control.aclose()

    asyncio.run(run())
    assert server.ends(within=2) == 130
    assert not server.path.exists()
    assert "mcpgym: stopped at once" in server.lines


def test_case_13_sigkill_leaves_a_stale_socket_that_the_next_start_replaces(servers: Any) -> None:
    first = servers().ready()
    first.process.kill()
    assert first.ends(within=5) == -signal.SIGKILL
    assert first.path.exists(), "nobody could have removed it"
    second = servers().ready()

    async def run() -> int:
        async with HttpControl(f"unix:{second.path}", SECRET) as control:
            return len(await control.environments())

    assert asyncio.run(run()) == 1
    second.process.send_signal(signal.SIGTERM)
    assert second.ends(within=6) == 0
    assert not second.path.exists()


def test_it_says_where_to_connect_and_shows_a_new_secret_once(servers: Any) -> None:
    server = servers(None).ready()
    text = "\n".join(server.lines)
    (secret,) = re.findall(r"export MCPGYM_CONTROL_SECRET=(\S+)", text)
    assert text.count(secret) == 1
    assert re.search(r"http://127\.0\.0\.1:\d+/mcp ", text)
    assert re.search(r"http://127\.0\.0\.1:\d+/desk/mcp\n", text)
    assert f"unix:{server.path}" in text

    async def run() -> int:
        async with HttpControl(f"unix:{server.path}", secret) as control:
            return len(await control.environments())

    assert asyncio.run(run()) == 1
    server.process.send_signal(signal.SIGTERM)
    assert server.ends(within=6) == 0
    assert "\n".join(server.lines).count(secret) == 1
    assert server.process.stdout is not None
    assert secret not in server.process.stdout.read()


def test_options_that_cannot_be_end_it_with_the_reason_and_not_with_a_hang(servers: Any) -> None:
    server = servers("short")
    assert server.ends(within=20) == 1
    assert "ConfigurationError: MCPGYM_CONTROL_SECRET has 5 characters" in server.lines[-1]
    assert not server.path.exists()
