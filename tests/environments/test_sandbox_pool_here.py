"""The pool over this machine's own back-end: a fork server that dies is replaced; its sessions are lost and say so."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, SessionLost, Unavailable
from mcpgym_environments.python_sandbox.sessions.choosing import choose
from mcpgym_environments.python_sandbox.sessions.pool import Pool


def fork_server(process: int) -> int:
    """The process that a session was forked from."""
    status = Path(f"/proc/{process}/status").read_text("ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("PPid:"))


def test_sessions_of_a_dead_fork_server_are_lost_and_the_next_come_from_another() -> None:
    async def work() -> None:
        pool = Pool(choose(), SandboxSpec(), ready=1)
        try:
            facts = await pool.start()
        except Unavailable as error:
            pytest.skip(str(error))
        assert facts["isolation"] in ("namespaces", "landlock")
        one, other = await pool.open(1), await pool.open(1)
        assert one.stream.process is not None
        drawn = "import random; random.random()"
        assert (await one.run(drawn)).output == (await other.run(drawn)).output  # the same seed
        server = fork_server(one.stream.process)
        os.kill(server, signal.SIGKILL)
        while Path(f"/proc/{server}").exists():  # its sessions end a moment before
            await asyncio.sleep(0.01)
        for session in (one, other):
            with pytest.raises(SessionLost, match="its connection ended"):
                await session.run("1")
        third = await pool.open(2)
        assert (await third.run("6 * 7")).output == b"42\n"
        assert pool.counts.starts == 2
        gone = third.stream.process
        await pool.close()
        assert gone is not None
        for _ in range(2000):
            if not Path(f"/proc/{gone}").exists():
                break
            await asyncio.sleep(0.01)
        assert not Path(f"/proc/{gone}").exists()

    asyncio.run(work())


def test_the_next_event_loop_finds_the_same_sessions() -> None:
    pool = Pool(choose(), SandboxSpec(), ready=1)
    try:
        session = asyncio.run(pool.open())
    except Unavailable as error:
        pytest.skip(str(error))
    asyncio.run(session.run("kept = 41"))
    assert asyncio.run(session.run("kept + 1")).output == b"42\n"
    asyncio.run(pool.close())
