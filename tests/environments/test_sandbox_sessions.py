"""A session takes its agent for hostile, keeps its own time, and never answers one call with another's answer."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandbox_fakes import Answering, agent, exactly, fine, honest

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.sessions.backend import (
    MAX_SEED,
    SandboxLimits,
    SandboxSpec,
    SessionLost,
    at_least,
)
from mcpgym_environments.python_sandbox.sessions.session import MAX_VALUE, MISSING, Counters, FileFault, Session
from mcpgym_environments.python_sandbox.sessions.streams import SocketStream

LIMITS = SandboxLimits(seconds=0.3, output_bytes=1000, read_bytes=100, workspace_bytes=1000, workspace_files=4)


def session(answering: Answering = honest, **options: Any) -> Session:
    return Session(agent(answering), LIMITS, **{"slack": 0.3, **options})


def with_session(work: Callable[[Session], Coroutine[Any, Any, Any]], answering: Answering = honest) -> Any:
    async def whole() -> Any:
        one = session(answering)
        try:
            return await work(one)
        finally:
            one.kill()

    return asyncio.run(whole())


# What an agent may say.


def raw(text: bytes, blob: bytes = b"") -> bytes:
    return struct.pack(">II", len(text), len(blob)) + text + blob


LIES: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "another number": lambda r: fine(r, n=r["n"] + 1),
    "the last call's number": lambda r: fine(r, n=r["n"] - 1),
    "a true number": lambda r: fine(r, n=True),
    "a number in words": lambda r: fine(r, n=str(r["n"])),
    "a fraction": lambda r: fine(r, n=float(r["n"])),
    "no number": lambda r: fine(r, n=...),
    "an unknown status": lambda r: fine(r, status="won"),
    "a list for a status": lambda r: fine(r, status=["ok"]),
    "no status": lambda r: fine(r, status=...),
    "a number for a reason": lambda r: fine(r, why=1),
    "a long reason": lambda r: fine(r, why="x" * 2000),
    "freshness as a number": lambda r: fine(r, fresh=1),
    "no freshness": lambda r: fine(r, fresh=...),
    "time that ran backwards": lambda r: fine(r, milliseconds=-1),
    "a fraction of time": lambda r: fine(r, milliseconds=1.5),
    "an age": lambda r: fine(r, milliseconds=2**40),
    "true for a time": lambda r: fine(r, milliseconds=True),
    "less than nothing left out": lambda r: fine(r, omitted=-1),
    "too much output": lambda r: fine(r, b"x" * 6000),
    "a list": lambda r: raw(b"[1]"),
    "a truth": lambda r: raw(b"true"),
    "nothing": lambda r: raw(b""),
    "no JSON": lambda r: raw(b"{'n': 1}"),
    "no UTF-8": lambda r: raw(b'{"n": "\xff"}'),
    "not a number": lambda r: raw(b'{"n": NaN}'),
    "a deep nest": lambda r: raw(b"[" * 100_000),
    "a number of a million digits": lambda r: raw(b'{"n": ' + b"1" * 900_000 + b"}"),
    "a header of four gigabytes": lambda r: struct.pack(">II", 2**32 - 1, 0),
    "a blob of four gigabytes": lambda r: struct.pack(">II", 2, 2**32 - 1) + b"{}",
    "a blob beyond what was asked": lambda r: struct.pack(">II", 2, 10 << 20) + b"{}",
    "HTTP": lambda r: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("lie", LIES)
def test_an_answer_that_is_odd_in_any_way_ends_the_session(lie: str) -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(LIES[lie](request))

    async def work() -> None:
        counters = Counters()
        ended: list[int] = []
        one = session(answering, counters=counters, on_end=lambda: ended.append(1))
        with pytest.raises(SessionLost, match="the sandbox session is gone") as lost:
            await one.run("1")
        assert "no answer within" not in str(lost.value)  # it was refused, and not waited for
        assert len(str(lost.value)) < 400  # nothing of an agent's is repeated at length
        assert str(lost.value).isprintable()
        for call in (one.run("2"), one.read("a"), one.evaluate("f", []), one.reset()):
            with pytest.raises(SessionLost):
                await call
        assert (counters.lost, ended) == (1, [1])
        with pytest.raises(EOFError):
            await one.stream.receive(1 << 20)

    asyncio.run(work())


@pytest.mark.parametrize("cut", [0, 1, 7, 8, 20])
def test_an_agent_that_ends_in_the_middle_of_an_answer_ends_the_session(cut: int) -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, b"whole")[:cut])
        connection.close()

    async def work(one: Session) -> None:
        with pytest.raises(SessionLost, match="its connection ended"):  # at once, and not at the deadline
            await one.run("1", seconds=60)

    with_session(work, answering)


@pytest.mark.parametrize("sent", [0, 5, 8, 20])
def test_an_answer_has_a_deadline_of_ours(sent: int) -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, b"whole")[:sent])

    async def work(one: Session) -> None:
        began = time.monotonic()
        with pytest.raises(SessionLost, match="no answer within"):
            await one.run("1", seconds=0.1)
        assert time.monotonic() - began > 0.85  # limit, grace of half a second, slack

    with_session(work, answering)


def test_an_answer_a_byte_at_a_time_is_an_answer() -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        for byte in fine(request, b"drop by drop"):
            connection.sendall(bytes([byte]))

    assert with_session(lambda one: one.run("1", seconds=20), answering).output == b"drop by drop"


def test_two_answers_to_one_request_end_the_session_at_the_next() -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, b"first") + fine(request, b"second"))

    async def work(one: Session) -> None:
        assert (await one.run("1")).output == b"first"
        with pytest.raises(SessionLost, match="it answers request 1, and 2 was asked"):
            await one.run("2")

    with_session(work, answering)


@given(st.binary(max_size=200))
@settings(max_examples=50, deadline=None)
def test_no_bytes_do_anything_but_end_the_session(data: bytes) -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(data)
        connection.close()

    async def work(one: Session) -> None:
        with pytest.raises(SessionLost):
            await one.run("1")

    with_session(work, answering)


def test_only_known_keys_of_an_answer_are_passed_on() -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, b"x", reward=1.0, total=1.0, _meta={"done": True}))

    outcome = with_session(lambda one: one.run("1"), answering)
    assert set(outcome.header) == {"n", "status", "why", "fresh", "milliseconds", "omitted"}


def test_a_reason_and_a_fault_are_made_harmless() -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, status="error", why="no\x1b[31m \u202efile\ud800"))

    async def work(one: Session) -> None:
        with pytest.raises(FileFault, match=r"no\\x1b\[31m \\u202efile\\ud800"):
            await one.read("a")
        assert (await one.run("1")).why == "no\\x1b[31m \\u202efile\\ud800"

    with_session(work, answering)


# Values.


@pytest.mark.parametrize(
    "text", ["1", "1.0", "true", "null", '"1"', "[1, 1.0, true, null]", '{"a": {"b": []}}', str(10**4000), "-0.0"]
)
def test_a_value_comes_back_type_for_type(text: str) -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, text.encode()))

    value = with_session(lambda one: one.evaluate("f", [1]), answering).value
    assert repr(value) == repr(json.loads(text))


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"NaN",
        b"Infinity",
        b"1e999",
        b"(1, 2)",
        b"\xff",
        b"[" * 50_000,
        b"1" * 5000,
        b"1 2",
        b" " * MAX_VALUE + b"1",
    ],
    ids=lambda blob: repr(blob[:8]),
)
def test_what_is_no_value_is_a_failed_call_and_no_lost_session(blob: bytes) -> None:
    def answering(request: dict[str, Any], sent: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, blob if request["op"] == "evaluate" else b"alive"))

    async def work(one: Session) -> None:
        found = await one.evaluate("f", [], seconds=20)
        assert (found.value, found.outcome.status) == (MISSING, "error")
        assert found.outcome.why is not None
        assert found.outcome.why.startswith("not JSON: ")
        assert (await one.run("1")).output == b"alive"

    with_session(work, answering)


@pytest.mark.parametrize("arguments", [[float("nan")], [{1, 2}], [object()], [b"x"], [{(1, 2): 3}]])
def test_arguments_that_are_no_json_are_the_callers_fault(arguments: list[Any]) -> None:
    async def work(one: Session) -> None:
        with pytest.raises(ConfigurationError, match="arguments of f: no JSON"):
            await one.evaluate("f", arguments)
        assert (await one.run("1")).output == b"1"

    with_session(work)


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf"), 1e6])
def test_seconds_that_are_none_are_the_callers_fault_and_lose_no_session(seconds: float) -> None:
    async def work(one: Session) -> None:
        for limits in ({"seconds": seconds}, {"cpu_seconds": seconds}):
            with pytest.raises(ConfigurationError, match="does not lie above 0 and up to 86400"):
                await one.run("1", **limits)
        assert (await one.run("1")).header["n"] == 1

    with_session(work)


def test_code_beyond_a_frame_is_the_callers_fault_and_takes_no_number() -> None:
    async def work(one: Session) -> None:
        with pytest.raises(ConfigurationError, match="run: a frame's blob has"):
            await one.run("x" * (frames.MAX_BLOB + 1))
        assert (await one.run("1")).header["n"] == 1

    with_session(work)


# Files.


def test_a_file_beyond_what_was_asked_for_ends_the_session() -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, b"x" * 11))

    async def work(one: Session) -> None:
        with pytest.raises(SessionLost, match="11 bytes beside its header; 10 at most"):
            await one.read("a", 0, 10)

    with_session(work, answering)


@pytest.mark.parametrize(
    "listing",
    [
        b"{}",
        b"[1]",
        b'[{"path": 1, "kind": "file", "size": 0}]',
        b'[{"path": "a", "kind": "file", "size": -1}]',
        b'[{"path": "a", "kind": "file", "size": true}]',
        b'[{"path": "a", "kind": null, "size": 0}]',
        b'[{"path": "a", "kind": "file"}]',
        b"",
        json.dumps([{"path": "x" * 9000, "kind": "file", "size": 0}]).encode(),
        json.dumps([{"path": "x", "kind": "file", "size": 0}] * 10_001).encode(),
    ],
    ids=lambda listing: f"{listing[:30]!r} {len(listing)}",
)
def test_a_listing_that_is_none_ends_the_session(listing: bytes) -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, listing))

    async def work(one: Session) -> None:
        with pytest.raises(SessionLost):
            await one.list()

    with_session(work, answering)


def test_an_export_is_put_together_and_one_without_end_ends_the_session() -> None:
    def parts(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        left = 2500 - request["offset"]
        connection.sendall(fine(request, bytes(min(1000, left)), more=left > 1000))

    def endless(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, bytes(10_000), more=True))

    def empty(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, more=True))

    async def work(one: Session) -> None:
        with pytest.raises(SessionLost, match="its tar has"):
            await one.export()

    assert with_session(lambda one: one.export(), parts) == bytes(2500)
    with_session(work, endless)
    with_session(work, empty)


@pytest.mark.parametrize(
    "said",
    [
        {"python": 3},
        {"packages": []},
        {"packages": {"numpy": 2}},
        {"python": "\x1b[2J"},
        {"status": "error", "why": "no"},
    ],
)
def test_odd_facts_and_a_failed_beginning_end_the_session(said: dict[str, Any]) -> None:
    def odd(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(fine(request, **said))

    async def work(one: Session) -> None:
        with pytest.raises(SessionLost):
            await one.hello(SandboxSpec())

    with_session(work, odd)


# Calls that are cancelled, and sessions that are ended.


@pytest.mark.parametrize("part", [0, 3, 8, 20])
def test_after_a_cancelled_call_the_next_gets_its_own_answer(part: int) -> None:
    """Whatever had come of the first answer when its caller left: nothing, half a head, the head, half the rest."""
    go_on = threading.Event()

    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        answer = fine(request, blob)
        if blob == b"first":
            connection.sendall(answer[:part])
            go_on.wait(5)
            connection.sendall(answer[part:])
        else:
            connection.sendall(answer)

    async def work(one: Session) -> None:
        first = asyncio.ensure_future(one.run("first", seconds=5))
        await asyncio.sleep(0.05)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.ensure_future(one.run("second", seconds=5))
        await asyncio.sleep(0.02)
        go_on.set()
        assert (await second).output == b"second"
        assert (await one.run("third")).output == b"third"
        assert one.ended is None

    with_session(work, answering)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_whatever_is_cancelled_when_no_call_gets_anothers_answer(turns_of_the_loop: list[int]) -> None:
    async def work(one: Session) -> None:
        for number, count in enumerate(turns_of_the_loop):
            call = asyncio.ensure_future(one.run(f"call {number}", seconds=5))
            for _ in range(count):
                await asyncio.sleep(0)
            call.cancel()
            await asyncio.wait([call])
            if not call.cancelled():
                assert call.result().output == f"call {number}".encode()
            assert (await one.run(f"next {number}", seconds=5)).output == f"next {number}".encode()

    with_session(work)


def test_a_cancelled_call_whose_answer_never_comes_ends_the_session_by_its_own_deadline() -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        if blob != b"first":
            connection.sendall(fine(request, blob))

    async def work(one: Session) -> None:
        first = asyncio.ensure_future(one.run("first", seconds=0.1))
        await asyncio.sleep(0.05)
        first.cancel()
        with pytest.raises(SessionLost, match="no answer to a call that was cancelled"):
            await one.run("second", seconds=60)

    with_session(work, answering)


def test_a_call_cancelled_while_it_is_being_sent_kills_the_session() -> None:
    async def work() -> None:
        ours, theirs = socket.socketpair()
        one = Session(SocketStream(ours), LIMITS)
        with theirs:  # nobody reads at the other end, so it stays sent in part
            call = asyncio.ensure_future(one.write("a", b"x" * (8 << 20)))
            await asyncio.sleep(0.02)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert one.ended == "a call was cancelled while its request was being sent"
            with pytest.raises(SessionLost, match="while its request was being sent"):
                await one.run("1")

    asyncio.run(work())


def test_a_killed_session_wakes_who_waits_for_it_from_whatever_thread() -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        exactly(connection, 1)  # nothing more comes

    async def work(one: Session) -> None:
        threading.Timer(0.05, one.kill, ["the memory was short"]).start()
        with pytest.raises(SessionLost, match="the sandbox session is gone: the memory was short"):
            await one.run("1", seconds=60)
        one.kill()
        with pytest.raises(SessionLost, match="the memory was short"):
            await one.run("1")

    with_session(work, answering)


def test_calls_of_one_session_go_one_at_a_time_in_order() -> None:
    inside: list[bytes] = []

    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        inside.append(blob)
        time.sleep(0.002)
        connection.sendall(fine(request, blob))

    async def work(one: Session) -> None:
        outcomes = await asyncio.gather(*(one.run(str(number)) for number in range(20)))
        assert [outcome.output for outcome in outcomes] == [str(number).encode() for number in range(20)]
        assert inside == [str(number).encode() for number in range(20)]

    with_session(work, answering)


def test_a_session_goes_on_under_another_event_loop() -> None:
    one = session()
    for number in range(3):
        assert asyncio.run(one.run(str(number))).output == str(number).encode()
    one.kill()


def test_the_descriptor_of_an_ended_session_is_let_go_when_nobody_uses_it() -> None:
    async def work() -> None:
        waits, idle = session(lambda *_: None), session()
        call = asyncio.ensure_future(waits.run("1", seconds=60))
        await asyncio.sleep(0.02)
        waits.kill()
        idle.kill()
        assert idle.stream._socket.fileno() == -1  # type: ignore[attr-defined]
        assert waits.stream._socket.fileno() != -1  # type: ignore[attr-defined]  # a loop still has it
        with pytest.raises(SessionLost):
            await call
        assert waits.stream._socket.fileno() == -1  # type: ignore[attr-defined]

    asyncio.run(work())


# What sessions are made of.


@pytest.mark.parametrize(
    "odd",
    [{"seconds": 0}, {"seconds": float("nan")}, {"seconds": 1e9}, {"memory": 1.5}, {"memory": True}, {"processes": -1},
     {"output_bytes": "64"}, {"cpu_seconds": True}],
)  # fmt: skip
def test_limits_that_are_none_are_refused_by_name(odd: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"sandbox limit {next(iter(odd))}: "):
        SandboxLimits(**odd)


@pytest.mark.parametrize(
    "odd", [{"seed": -1}, {"seed": 1.0}, {"seed": MAX_SEED + 1}, {"packages": ["numpy"]}, {"packages": ("",)}]
)
def test_specifications_that_are_none_are_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"sandbox (seed|packages)"):
        SandboxSpec(**odd)


def test_levels_are_in_their_order() -> None:
    assert at_least("vm", "gvisor")
    assert at_least("namespaces", "namespaces")
    assert not at_least("wasm", "namespaces")
    assert not at_least("none", "landlock")
