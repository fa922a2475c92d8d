"""A pool whose process ends while it starts, or forks: nothing waits, nothing is left, nobody has another's session."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mcpgym_environments.python_sandbox.jail.folders import sweep
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, SessionLost, Unavailable
from mcpgym_environments.python_sandbox.sessions.choosing import choose
from mcpgym_environments.python_sandbox.sessions.pool import Pool

STARTING = """
import asyncio, os, signal, time
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec
from mcpgym_environments.python_sandbox.sessions.choosing import choose
from mcpgym_environments.python_sandbox.sessions.pool import Pool

def children(process):
    found = []
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/children") as file:
            found += map(int, file.read().split())
    return found

def is_fork_server(process):
    try:
        with open(f"/proc/{process}/cmdline") as file:
            return "zygote" in file.read()
    except OSError:  # it was one that tries what can be done here, and is gone
        return False

async def main():
    pool = Pool(choose(), SandboxSpec())
    starting = asyncio.create_task(pool.start())
    for _ in range(2000):
        try:
            below = [process for launcher in children(os.getpid()) for process in children(launcher)]
        except OSError:
            continue
        servers = [process for process in below if is_fork_server(process)]
        if servers:
            os.kill(servers[0], signal.SIGSTOP)
            print(servers[0], flush=True)
            return
        if starting.done():
            print(f"refused: {starting.exception()}")
            return
        await asyncio.sleep(0.005)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the fork server is of Linux")
@pytest.mark.flaky(reruns=1)  # it measures time
def test_an_interpreter_that_exits_does_not_wait_for_a_fork_server_that_starts() -> None:
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", STARTING], capture_output=True, text=True, timeout=50, check=False)
    if done.stdout.startswith("refused"):
        pytest.skip(done.stdout)
    assert time.monotonic() - started < 30  # it would be ready never
    assert done.returncode == 0
    assert done.stderr == ""
    for _ in range(2000):
        if not Path(f"/proc/{done.stdout.strip()}").exists():
            return
        time.sleep(0.01)
    raise AssertionError("the fork server is still there")


def test_a_fork_of_the_server_neither_uses_nor_ends_its_sessions() -> None:
    pool = Pool(choose(), SandboxSpec(), ready=0)
    try:
        used, ended, dropped = (asyncio.run(pool.open()) for _ in range(3))
    except Unavailable as error:
        pytest.skip(str(error))
    asyncio.run(used.run("kept = 41"))
    child = os.fork()
    if child == 0:
        try:
            try:
                asyncio.run(used.run("kept += 1"))
                os._exit(1)
            except SessionLost as error:
                fine = "another process" in str(error)
            ended.kill()
            del dropped
            os._exit(0 if fine else 2)
        finally:
            os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert asyncio.run(used.run("kept")).output == b"41\n"
    for session in (ended, dropped):
        assert asyncio.run(session.run("6 * 7")).output == b"42\n"
    asyncio.run(pool.close())


BUBBLEWRAP = """
import asyncio, os, signal
from mcpgym_environments.python_sandbox.backends.bubblewrap import Bubblewrap
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, Unavailable
backend = Bubblewrap()
try:
    asyncio.run(backend.prepare(SandboxSpec()))
except Unavailable:
    os._exit(0)
print(backend._folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_what_a_killed_server_left_of_bubblewrap_is_removed_by_the_next() -> None:
    done = subprocess.run([sys.executable, "-c", BUBBLEWRAP], capture_output=True, text=True, timeout=60, check=False)
    if not done.stdout:
        pytest.skip("bubblewrap is not here")
    assert Path(done.stdout.strip()).exists()
    sweep(str(Path(done.stdout).parent))
    assert not Path(done.stdout.strip()).exists()
