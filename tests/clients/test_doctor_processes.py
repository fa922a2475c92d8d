"""Time as the doctor counts it: a machine that is busy with other things makes no server late."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from mcpgym_clients.doctor import processes
from mcpgym_clients.doctor.processes import Stopwatch, queued

BUSY = "import os; os.sched_setaffinity(0, {int(os.environ['ON'])})\nwhile True: pass"
IDLE = "import time; print(flush=True); time.sleep(60)"
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says who queued")


@pytest.fixture
def rivals() -> Iterator[list[int]]:
    """Two processes that want one processor, so that each has it half of the time."""
    environment = {**os.environ, "ON": str(min(os.sched_getaffinity(0)))}
    running = [subprocess.Popen([sys.executable, "-c", BUSY], env=environment) for _ in range(2)]
    yield [process.pid for process in running]
    for process in running:
        process.kill()
        process.wait()


@linux
def test_who_has_no_processor_queues_and_who_wants_none_does_not(rivals: list[int]) -> None:
    with subprocess.Popen([sys.executable, "-c", IDLE], stdout=subprocess.PIPE) as idle:
        assert idle.stdout is not None
        idle.stdout.readline()
        before = queued(idle.pid)
        watch = Stopwatch(rivals)
        asyncio.run(watch.until(lambda: watch.queued > 0.3, 60))
        assert watch.queued > 0.3
        assert watch.aside() == "" or "without a processor" in watch.aside()
        assert queued(idle.pid) - before < watch.queued
        idle.kill()


def test_time_in_the_queue_is_not_counted_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    started = time.monotonic()
    monkeypatch.setattr(processes, "queued", lambda pid: time.monotonic() - started)
    monkeypatch.setattr(processes, "MOST_QUEUED", 0.8)
    watch = Stopwatch([1])
    assert not asyncio.run(watch.until(lambda: False, 0.2))
    assert time.monotonic() - started >= 1.0, "0.2 s of its own, and 0.8 s that it was kept waiting"
    assert "(and 0.8 s without a processor, which are not counted)" in watch.aside()


def test_a_process_that_is_gone_queued_for_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()
    assert queued(process.pid) == 0
    watch = Stopwatch([process.pid])
    assert asyncio.run(watch.until(lambda: True, 0))
    assert not asyncio.run(watch.until(lambda: False, 0))
    assert watch.aside() == ""
