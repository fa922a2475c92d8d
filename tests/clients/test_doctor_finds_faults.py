"""The doctor finds each fault of a server that has one, says so in words, and finds none in one that has none."""

from __future__ import annotations

import pytest
from doctor_toys import examined, examined_apart

from mcpgym_clients.doctor.calls import Permission
from mcpgym_clients.doctor.checks.leaks import PARTS, _judge
from mcpgym_clients.doctor.examination import CannotConnect
from mcpgym_clients.doctor.findings import Examination, Outcome
from mcpgym_clients.doctor.processes import Held, Share


def outcome(made: Examination, check: str) -> Outcome:
    return next(found for found in made.outcomes if found.name == check)


def told(found: Outcome, verdict: str) -> str:
    return "\n".join(item.evidence for item in found.findings if item.verdict == verdict)


def test_a_healthy_server_passes_everything() -> None:
    made = examined("", places=True)
    assert {found.name: found.verdict.value for found in made.outcomes if found.verdict != "pass"} == {}
    names = {found.name for found in made.outcomes}
    assert names >= {"eras", "isolation", "retries", "leaks", "web-pages", "dead-sessions"}
    assert "shutdown" not in names, "that is for stdio"


FAULTS = [
    ("no-modern", "eras", "warn", "2026-07-28"),
    ("no-handshake", "eras", "fail", "handshake"),
    ("any-version", "eras", "warn", "1999-12-31"),
    ("eras-differ", "eras", "fail", "description of add"),
    ("no-schema", "schemas", "fail", "no JSON Schema"),
    ("title", "schemas", "warn", "clients would rewrite"),
    ("unstable", "schemas", "warn", "second list"),
    ("two-of-one-name", "schemas", "fail", "more than once"),
    ("contents-differ", "contents", "warn", "differ"),
    ("unstructured", "contents", "fail", "sends no structured content"),
    ("misfit", "contents", "fail", "does not fit its schema"),
    ("traceback", "error-texts", "warn", "insides"),
    ("mute", "error-texts", "warn", "Internal error"),
    ("takes-anything", "error-texts", "warn", "accepted"),
    ("dies-of-junk", "error-texts", "fail", "after broken JSON"),
    ("takes-anything", "arguments", "warn", "accepted"),
    ("fails-on-odd", "arguments", "fail", "HTTP 500"),
    ("dies-with-client", "cancellation", "fail", "left in mid-call"),
    ("any-session", "dead-sessions", "warn", "served all the same"),
    ("any-host", "web-pages", "warn", "a foreign Origin"),
]


@pytest.mark.parametrize(("fault", "check", "verdict", "words"), FAULTS, ids=lambda value: str(value)[:20])
def test_a_fault_is_found(fault: str, check: str, verdict: str, words: str) -> None:
    found = outcome(examined(fault, check), check)
    assert found.verdict == verdict, found
    assert words in told(found, verdict)
    assert "stumbled" not in told(found, "fail")
    assert all(item.advice for item in found.findings if item.verdict in ("warn", "fail"))


def test_state_that_all_clients_share_is_proven_by_a_count() -> None:
    found = outcome(examined("global", "isolation"), "isolation")
    assert found.verdict == "fail"
    assert told(found, "fail").count("count on") == 2, "in both eras"


def test_state_on_the_session_id_is_told_apart_from_state_lost_without_it() -> None:
    found = outcome(examined("sessions", "isolation"), "isolation")
    assert found.verdict == "fail"
    assert "state is lost from call to call" in told(found, "fail")
    assert "hangs on the session id" in told(found, "warn")
    assert "8 clients at once read what one alone reads" in told(found, "pass")


def test_a_text_that_another_client_sent_is_proof() -> None:
    found = outcome(examined("notes", "isolation"), "isolation")
    assert found.verdict == "fail"
    assert "canary" in told(found, "fail")


def test_urls_that_share_a_state_are_found() -> None:
    found = outcome(examined("global", "isolation", places=True), "isolation")
    assert found.verdict != "pass"
    assert "two clients" in told(found, "warn")


@pytest.mark.parametrize(
    ("fault", "verdict", "words"), [("makes-twice", "warn", "made twice"), ("loses", "fail", "one of them was lost")]
)
def test_calls_that_come_together(fault: str, verdict: str, words: str) -> None:
    found = outcome(examined(fault, "isolation", "retries", places=True), "retries")
    assert found.verdict == verdict, found
    assert words in told(found, verdict)


def test_connections_that_are_closed_after_each_answer_are_found() -> None:
    found = outcome(examined("closes", "waiting", quick=False), "waiting")
    assert "closes the connection" in told(found, "warn")


@pytest.mark.parametrize(("fault", "words"), [("leaks-memory", "KiB stay"), ("leaks-files", "descriptors grow")])
def test_what_sessions_leave_behind_is_found(fault: str, words: str) -> None:
    found = outcome(examined_apart(fault, "leaks", sessions=400), "leaks")
    assert found.verdict == "fail", found
    assert words in told(found, "fail")


def test_what_one_process_leaks_is_not_hidden_by_others_that_end() -> None:
    """A server that leaks 64 KiB a session, while ten helpers of 50 MiB that it once started end one by one."""
    measured = []
    for part in range(PARTS + 1):
        helpers = {(pid, 0.0): Share(50 * 2**20, 9, 1, 0.0) for pid in range(2, 12 - 2 * part)}
        measured.append(Held({(1, 0.0): Share(2**28 + part * 50 * 2**16, 20 + part * 10, 1, 0.0), **helpers}))
    found = Outcome("leaks", "Do sessions leave nothing behind?")
    _judge(found, "200 sessions", 200, measured, well=True)
    assert "64 KiB stay" in told(found, "fail")
    assert "descriptors grow" in told(found, "fail")
    assert "in the 3 processes that ran all the time, 356.0 → 368.5 MiB, 38 → 78 descriptors" in told(found, "fail")


def test_what_declares_to_destroy_is_not_called_unasked() -> None:
    made = examined("destructive", "contents", "isolation", "arguments")
    assert {outcome(made, check).verdict.value for check in ("contents", "isolation", "arguments")} == {"skipped"}


def test_with_read_only_nothing_else_is_called() -> None:
    made = examined("", "contents", "arguments", permission=Permission(read_only=True))
    assert outcome(made, "contents").verdict == "skipped"


def test_a_server_that_speaks_nothing_is_no_verdict() -> None:
    with pytest.raises(CannotConnect, match="404"):
        examined("speaks-nothing")
