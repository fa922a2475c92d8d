"""Kills servers, fork servers and sessions, and says what was left: a program for a cell.

``python sandbox_killing.py BACKEND`` prints a JSON list of faults; ``--serve`` is the server that it kills.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent))
from sandbox_pools import make_pool

SESSIONS = 32
BOMB = "import os, signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True:\n    try: os.fork()\n    except OSError: pass"
LEAVER = """
import os, signal, time
for s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)
try:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(.01)
except OSError: pass
while True: time.sleep(1)
"""
LOOP = "while True: pass"


async def serve(backend: str) -> None:
    """Hold many sessions: some bomb, some leave their group, some loop, most wait."""
    pool = make_pool(backend, executing=SESSIONS)
    sessions = [await pool.open(number) for number in range(SESSIONS)]
    for session in sessions:
        await session.run("x = 1", 5)
    busy = [BOMB] * 2 + [LEAVER] * 3 + [LOOP] * 3
    calls = [asyncio.create_task(session.run(code, 60)) for session, code in zip(sessions, busy, strict=False)]
    await asyncio.sleep(0.7)
    print("ready", flush=True)
    await asyncio.gather(*calls, return_exceptions=True)


def others(known: set[int]) -> list[psutil.Process]:
    """Processes that were not there before, without those that only wait to be reaped."""
    found = psutil.process_iter(["status", "name", "uids"])
    return [one for one in found if one.pid not in known and one.info["status"] != psutil.STATUS_ZOMBIE]


def gone(what: str, left: Callable[[], list[Any]], seconds: float = 1.0) -> list[str]:
    """A fault unless nothing is left within so many seconds."""
    deadline = time.monotonic() + seconds
    while found := left():
        if time.monotonic() > deadline:
            return [f"{what}: after {seconds} s there are still {len(found)}: {found[:4]}"]
        time.sleep(0.01)
    return []


def mounts() -> int:
    """How many mounts this process sees."""
    return len(Path("/proc/self/mountinfo").read_text().splitlines())


def kill_server(backend: str) -> list[str]:
    """SIGKILL for the whole server: everything of it ends by the kernel alone."""
    known, mounted = {process.pid for process in psutil.process_iter()}, mounts()
    command = [sys.executable, __file__, backend, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        if server.stdout.readline() != "ready\n":
            return ["the server did not get ready"]
        running = len(others(known))
        server.kill()
    faults = gone("SIGKILL of the server", lambda: others(known))
    if running < SESSIONS:
        faults.append(f"the server had only {running} processes")
    if mounts() != mounted:
        faults.append(f"there are {mounts()} mounts, {mounted} before")
    return faults


async def lost(call: Coroutine[Any, Any, Any] | asyncio.Task[Any], what: str) -> list[str]:
    """A fault unless the call ends soon, by the error of a lost session."""
    from mcpgym_environments.python_sandbox.sessions.backend import SessionLost

    started = time.monotonic()
    try:
        outcome = await asyncio.wait_for(call, 10)
    except SessionLost:
        took = time.monotonic() - started
        return [f"{what}: known only after {took:.1f} s"] if took > 2 else []
    except TimeoutError:
        return [f"{what}: the call never ended"]
    return [f"{what}: the call ended with {outcome}"]


async def answers(session: Any, what: str) -> list[str]:
    """A fault unless the session answers."""
    outcome = await asyncio.wait_for(session.run("6 * 7", 5), 8)
    return [] if outcome.output.strip() == b"42" else [f"{what}: {outcome}"]


async def kill_parts(backend: str) -> list[str]:
    """Kill a bombing session, an idle session's and a busy session's first process, and the fork server."""
    known = {process.pid for process in psutil.process_iter()}
    pool = make_pool(backend)
    neighbour, bomber, idle, busy, stopped = [await pool.open(number) for number in range(5)]
    faults: list[str] = []
    call = asyncio.create_task(bomber.run(BOMB, 30))
    await asyncio.sleep(0.5)
    first = psutil.Process(bomber.stream.process)
    family = [first, *first.children(recursive=True)]
    faults += await answers(neighbour, "beside a bomb")
    bomber.kill()
    if backend == "namespaces":  # where forking is refused, the call has ended long ago
        faults += await lost(call, "a killed bomb's call")
    await asyncio.gather(call, return_exceptions=True)
    faults += gone("a killed bomb", lambda: [one for one in family if running(one)])
    os.kill(idle.stream.process, signal.SIGKILL)
    faults += await lost(idle.run("1", 5), "an idle session whose init was killed")
    call = asyncio.create_task(busy.run("import time; time.sleep(30)", 60))
    await asyncio.sleep(0.2)
    os.kill(busy.stream.process, signal.SIGKILL)
    faults += await lost(call, "a busy session whose init was killed")
    faults += await answers(neighbour, "after kills of others")
    os.kill(stopped.stream.process, signal.SIGSTOP)
    started = time.monotonic()
    faults += [text for text in await lost(stopped.run("1", 0.5), "a stopped init") if "known only" not in text]
    if time.monotonic() - started > 6:
        faults.append("a stopped init was found out only after 6 s")
    faults += await kill_fork_server(pool)
    neighbour.kill()
    await pool.close()
    return faults + gone("the pool was closed", lambda: others(known))


def running(process: psutil.Process) -> bool:
    """Whether it still does anything."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def kill_fork_server(pool: Any) -> list[str]:
    """The processes that fork sessions die: those they made may be lost, and the pool makes new ones."""
    for child in psutil.Process().children():
        child.kill()
    deadline = time.monotonic() + 15
    while True:
        try:
            another = await asyncio.wait_for(pool.open(9), 10)
            faults = await answers(another, "opened after the fork server was killed")
            another.kill()
            return faults
        except Exception as error:
            if time.monotonic() > deadline:
                return [f"no session opens after the fork server was killed: {error!r}"]
            await asyncio.sleep(0.05)


def main() -> None:
    """Read the command line and print the faults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=("namespaces", "landlock"))
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.backend))
    else:
        print(json.dumps(kill_server(given.backend) + asyncio.run(kill_parts(given.backend))))


if __name__ == "__main__":
    main()
