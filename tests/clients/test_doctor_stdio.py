"""The doctor on stdio servers: every way their client can go, what they leave, and what they print."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import psutil
import pytest

from mcpgym_clients.doctor.context import Context
from mcpgym_clients.doctor.examination import CannotConnect, examine
from mcpgym_clients.doctor.findings import Examination, Outcome
from mcpgym_clients.doctor.subjects import StdioSubject

TOY = str(Path(__file__).with_name("doctor_stdio_toy.py"))


def examined(fault: str, *only: str) -> Examination:
    async def work() -> Examination:
        subject = StdioSubject([sys.executable, "-S", TOY, fault], 3.0)
        try:
            return await examine(Context(subject, quick=True, sessions=100), only)
        finally:
            await subject.end()

    return asyncio.run(work())


def shutdown(fault: str) -> Outcome:
    return next(found for found in examined(fault, "shutdown").outcomes if found.name == "shutdown")


def told(found: Outcome, verdict: str) -> str:
    return "\n".join(item.evidence for item in found.findings if item.verdict == verdict)


@pytest.mark.slow
def test_a_healthy_server_passes_everything_and_nothing_runs_on() -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    made = examined("")
    assert {found.name: found.findings for found in made.outcomes if found.verdict != "pass"} == {}
    assert {found.name for found in made.outcomes} >= {"shutdown", "isolation", "retries", "leaks"}
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


@pytest.mark.slow
def test_a_server_that_outlives_its_client_is_found_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpgym_clients.doctor.checks.shutdown.LATE_SECONDS", 0.5)
    monkeypatch.setattr("mcpgym_clients.doctor.stdio_wire.END_SECONDS", 0.2)
    found = shutdown("stays")
    assert found.verdict == "fail"
    for case in ("after a session", "in mid-call", "SIGTERM", "SIGKILL"):
        assert case in told(found, "fail")
    assert not [
        each for each in psutil.process_iter(["cmdline"]) if (each.info["cmdline"] or [])[-2:] == [TOY, "stays"]
    ]


def test_children_that_a_server_leaves_are_found_and_ended() -> None:
    found = shutdown("child")
    assert "1 of its child processes stay" in told(found, "fail")
    assert "SIGKILL" in told(found, "fail")


def test_children_of_the_server_that_the_official_client_leaves_are_ended() -> None:
    code = "import time; time.sleep(120)"

    def left() -> set[int]:
        found = psutil.process_iter(["cmdline", "status"])
        return {
            each.pid
            for each in found
            if (each.info["cmdline"] or [])[-1:] == [code] and each.info["status"] != psutil.STATUS_ZOMBIE
        }

    before = left()
    made = examined("child", "sdk-client")
    assert {found.name for found in made.outcomes} == {"eras", "sdk-client"}
    for _ in range(100):  # other tests that run beside this one leave theirs for a moment
        if left() <= before:
            return
        time.sleep(0.1)
    raise AssertionError(left() - before)


def test_lines_that_are_no_protocol_are_found() -> None:
    found = shutdown("noise")
    assert "starting up" in told(found, "fail")


def test_a_server_that_depends_on_the_locale_is_found() -> None:
    assert "ASCII locale" in told(shutdown("locale"), "fail")


def test_a_program_that_is_no_server_is_no_verdict() -> None:
    async def work() -> None:
        subject = StdioSubject([sys.executable, "-c", "import sys; print('hello'); sys.exit('broken')"], 3.0)
        await examine(Context(subject, quick=True))

    with pytest.raises(CannotConnect, match="its last words: broken"):
        asyncio.run(work())
