"""Which tests are run once more when they fail: those that have to do with other processes.

They depend on how busy the machine is, for any wait can be too short. The first failure is printed all the same, whole,
under "rerun test summary info", and a suite may have ten of them. A test of plain code that fails has failed.
"""

from __future__ import annotations

import sys

import pytest

OTHERS = frozenset({"subprocess.Popen", "os.fork", "os.posix_spawn", "socket.connect", "socket.bind", "socket.sendmsg"})
"""What Python reports when a process is started, or spoken to over a socket."""
seen: set[str] = set()
"""Which of them the test that runs has done so far."""


def _note(event: str, _: object) -> None:
    if event in OTHERS:
        seen.add(event)


sys.addaudithook(_note)  # PEP 578


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test says itself how often it may fail (``flaky``), or what it has done says it."""
    for item in items:
        if not item.get_closest_marker("flaky"):
            item.add_marker(pytest.mark.flaky(reruns=1, condition=lambda: bool(seen)))


def pytest_runtest_logstart() -> None:
    """A test begins, and has not had to do with anything yet."""
    seen.clear()
