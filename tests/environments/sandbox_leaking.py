"""Opens and closes sessions again and again and says what has grown: a program for a cell.

``python sandbox_leaking.py BACKEND COUNT`` prints a JSON object: what was held before and after, and the faults.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).parent))
from sandbox_memory import shared
from sandbox_pools import make_pool

AT_ONCE = 8
CODE = "open('f', 'wb').write(bytes(300_000)); x = list(range(1000)); print(len(x))"
ALLOWED = {
    "descriptors": 6,
    "threads": 4,
    "processes": 6,
    "mounts": 0,
    "mounts_of_the_fork_server": 0,
    "files": 8,
    "shared_memory": 8 << 20,
    "memory_of_the_server": 12 << 20,
    "memory_of_the_fork_server": 6 << 20,
}
"""How much each may differ: the pool has a session more or less ready, and allocators round up."""


def mounts_of(pid: int) -> int:
    """How many mounts a process sees; 0 where it is not ours to ask."""
    try:
        return len(Path(f"/proc/{pid}/mountinfo").read_text().splitlines())
    except OSError:
        return 0


def own_memory(process: psutil.Process) -> int:
    """Bytes that only this process holds, where the kernel tells."""
    try:
        return int(process.memory_full_info().uss)
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return int(process.memory_info().rss)


def fork_server(server: psutil.Process) -> psutil.Process:
    """The process that forks the sessions: of the server's descendants the one with most children."""
    found = server.children(recursive=True)
    return max(found, key=lambda process: len(process.children()), default=server)


def held() -> dict[str, int]:
    """What is held now."""
    gc.collect()
    server = psutil.Process()
    forks = fork_server(server)
    return {
        "descriptors": server.num_fds(),
        "threads": threading.active_count(),
        "processes": len(server.children(recursive=True)),
        "mounts": mounts_of(os.getpid()),
        "mounts_of_the_fork_server": mounts_of(forks.pid),
        "files": sum(len(files) + len(folders) for _, folders, files in os.walk(os.environ["TMPDIR"])),
        "shared_memory": shared(),
        "memory_of_the_server": own_memory(server),
        "memory_of_the_fork_server": own_memory(forks),
    }


async def settled() -> dict[str, int]:
    """What is held when the pool has refilled: the least of some looks."""
    least: dict[str, int] = {}
    for _ in range(8):
        await asyncio.sleep(0.15)
        try:
            now = held()
        except psutil.NoSuchProcess:
            continue
        least = {name: min(value, least.get(name, value)) for name, value in now.items()}
    return least


def grown(before: dict[str, int], after: dict[str, int], **more: int) -> list[str]:
    """What is held more of than may be."""
    allowed = {**ALLOWED, **more}
    return [
        f"{name}: {before[name]} before, {after[name]} after"
        for name in allowed
        if after[name] - before[name] > allowed[name]
    ]


async def open_and_close(pool: Any, count: int) -> None:
    """So many sessions, a few at once: each runs code, every third is killed in a call."""
    numbers = iter(range(count))

    async def one() -> None:
        for number in numbers:
            session = await pool.open(number)
            outcome = await session.run(CODE, 10)
            assert outcome.output == b"1000\n", outcome
            if number % 3 == 0:
                call = asyncio.create_task(session.run("while True: pass", 20))
                await asyncio.sleep(0.002)
                session.kill()
                await asyncio.gather(call, return_exceptions=True)
            session.kill()

    await asyncio.gather(*(one() for _ in range(AT_ONCE)))


async def leaks(backend: str, count: int) -> dict[str, Any]:
    """Open and close, and compare."""
    pool = make_pool(backend, ready=4)
    first = await pool.open(0)
    await open_and_close(pool, 32)
    before = await settled()
    started = time.monotonic()
    await open_and_close(pool, count)
    took = time.monotonic() - started
    after = await settled()
    faults = grown(before, after)
    outcome = await first.run("6 * 7", 5)
    if outcome.output.strip() != b"42":
        faults.append(f"the session that stayed open answered {outcome}")
    first.kill()
    await pool.close()
    deadline = time.monotonic() + 10
    while left := psutil.Process().children(recursive=True):
        if time.monotonic() > deadline:
            faults.append(f"after the pool was closed: {left}")
            break
        await asyncio.sleep(0.01)
    return {"before": before, "after": after, "faults": faults, "opened_per_second": round(count / took, 1)}


def main() -> None:
    """Read the command line and print the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("backend", choices=("namespaces", "landlock"))
    parser.add_argument("count", type=int)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(leaks(given.backend, given.count))))


if __name__ == "__main__":
    main()
