"""Code that may ask: its questions go to who answers them, and the session's clock stands still meanwhile."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import psutil
import pytest
from sandbox_agents import INSIDE, missing, pool
from sandbox_fakes import agent, exactly, fine

from mcpgym.errors import ConfigurationError, InfrastructureError
from mcpgym_environments.python_sandbox.jail import frames
from mcpgym_environments.python_sandbox.sessions.asking import Offer, Refused, Unanswered
from mcpgym_environments.python_sandbox.sessions.backend import SandboxLimits, SandboxSpec, SessionLost
from mcpgym_environments.python_sandbox.sessions.session import Session
from mcpgym_environments.python_sandbox.sessions.turns import Turns


class Shouting:
    """Answers in capitals; ``sleep N`` after so many seconds, and ``no`` not at all."""

    def __init__(self, **offer: int) -> None:
        self.offer = Offer(**{"prompts": 4, "characters": 1000, "bytes": 8000, "asks": 30, **offer})
        self.questions: list[list[str]] = []
        self.given_up = 0

    async def answer(self, prompts: Sequence[str]) -> list[str]:
        self.questions.append(list(prompts))
        first = prompts[0]
        if first.startswith("sleep "):
            try:
                await asyncio.sleep(float(first[6:]))
            except asyncio.CancelledError:
                self.given_up += 1
                raise
        if first == "no":
            raise Refused("not today")
        if first == "broken":
            raise RuntimeError("the model is on fire")
        if first == "too few":
            return []
        return [prompt.upper() for prompt in prompts]


def with_session(act: Callable[[Session, Shouting], Awaitable[None]], backend: str = INSIDE, **offer: int) -> None:
    """Do something with a fresh session whose code may ask."""
    if why := missing(backend):
        pytest.skip(why)

    async def do() -> None:
        broker = Shouting(**offer)
        session = await pool(backend).open(0, broker)
        try:
            await act(session, broker)
        finally:
            session.kill()

    asyncio.run(do())


async def shown(session: Session, code: str, **limits: float) -> str:
    return (await session.run(code, **limits)).output.decode()


@pytest.mark.parametrize("backend", [INSIDE, "landlock", "unsafe-local"])
def test_code_asks_and_reads_the_answers(backend: str) -> None:
    async def act(session: Session, broker: Shouting) -> None:
        assert await shown(session, "llm('hello é \\u20ac \\N{GRINNING FACE}')") == "'HELLO É € \N{GRINNING FACE}'\n"
        assert await shown(session, "print(*llm_batch(str(n) + 'a' for n in range(6)))") == "0A 1A 2A 3A 4A 5A\n"
        assert [len(question) for question in broker.questions] == [1, 4, 2]  # as many at once as are offered
        assert await shown(session, "llm_batch([])") == "[]\n"
        assert (await session.evaluate("builtins.llm", ["called"])).value == "CALLED"
        assert await shown(session, "llm = 5\nimport builtins\nbuiltins.llm('still there')") == "'STILL THERE'\n"

    with_session(act, backend)


def test_what_is_refused_is_an_error_of_the_code_and_says_why() -> None:
    async def act(session: Session, broker: Shouting) -> None:
        assert (await shown(session, "llm('no')")).endswith("RuntimeError: not today\n")
        assert "a prompt may have 1,000 characters; number 1 has 1,001" in await shown(
            session, "llm_batch(['x', 'x' * 1001])"
        )
        assert "a prompt is a str, and number 0 is of type int" in await shown(session, "llm(3)")
        assert "surrogates not allowed" in await shown(session, "llm('\\ud800')")
        assert broker.questions == [["no"]]
        assert await shown(session, "llm('x')") == "'X'\n"

    with_session(act)


def test_a_session_without_an_offer_has_nothing_to_ask_with() -> None:
    if why := missing(INSIDE):
        pytest.skip(why)

    async def do() -> None:
        session = await pool(INSIDE).open(0)
        assert "NameError: name 'llm' is not defined" in await shown(session, "llm('x')")
        raw = (
            "import os, struct\nos.write(3, struct.pack('>BIII', 2, 2, 0, 5) + b'[\"a\"]')\nimport time\ntime.sleep(9)"
        )
        outcome = await session.run(raw)
        assert (outcome.status, outcome.why) == ("crashed", "wrote to the channel of the worker")
        session.kill()

    asyncio.run(do())


def test_the_clock_stands_still_while_a_question_waits_and_runs_on_afterwards() -> None:
    async def act(session: Session, broker: Shouting) -> None:
        assert await shown(session, "llm('sleep 1.5')", seconds=1) == "'SLEEP 1.5'\n"
        began = time.monotonic()
        outcome = await session.run("llm('sleep 1')\nimport time\ntime.sleep(60)", 1)
        assert (outcome.status, outcome.why) == ("timeout", "timeout")
        assert time.monotonic() - began > 1.9

    with_session(act)


def test_processor_time_counts_while_a_question_waits() -> None:
    async def act(session: Session, broker: Shouting) -> None:
        code = """
from threading import Thread
def burn():
    while True: pass
Thread(target=burn, daemon=True).start()
llm('sleep 60')
"""
        outcome = await session.run(code, cpu_seconds=0.4)
        assert (outcome.status, outcome.why) in (("timeout", "cpu"), ("killed", "cpu"))
        assert broker.given_up == 1
        assert await shown(session, "llm('and on')") == "'AND ON'\n"

    with_session(act)


@pytest.mark.flaky(reruns=1)  # it measures time
def test_an_answer_gives_no_time_to_a_call_that_has_used_up_its_own() -> None:
    code = """
import signal, threading, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
threading.Thread(target=llm, args=("late",), daemon=True).start()
time.sleep(1)
while True: pass
"""

    async def act(session: Session, broker: Shouting) -> None:
        answered = 0.0

        async def answer(prompts: Sequence[str]) -> list[str]:
            nonlocal answered
            (worker,) = psutil.Process(session.stream.process).children()
            while worker.cpu_times().user < 0.3:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.3)  # by now it has been interrupted, and has not half a second left
            answered = time.monotonic()
            return ["late"]

        broker.answer = answer  # type: ignore[method-assign]
        outcome = await session.run(code, seconds=10, cpu_seconds=0.2)
        assert (outcome.status, outcome.why) == ("killed", "cpu")
        assert time.monotonic() - answered < 1.2  # and not the seconds that the question waited as well

    with_session(act)


def test_threads_take_turns_and_one_that_outlives_its_run_gets_no_answer_of_another() -> None:
    async def act(session: Session, broker: Shouting) -> None:
        code = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(6) as executor: print(*executor.map(llm, ["a", "b", "sleep 0.1", "d", "e", "f"]))
"""
        assert await shown(session, code) == "A B SLEEP 0.1 D E F\n"
        left = """
from threading import Thread
said = []
def ask():
    try: said.append(llm('sleep 30'))
    except RuntimeError as error: said.append(str(error))
Thread(target=ask, daemon=True).start()
"""
        assert (await session.run(left)).status == "ok"
        assert await shown(session, "import time\nwhile not said: time.sleep(0.01)\nsaid") == (
            "['the run that asked has ended']\n"
        )
        assert await shown(session, "llm('mine')") == "'MINE'\n"

    with_session(act)


def test_a_signal_that_ends_the_waiting_leaves_the_channel_in_step() -> None:
    async def act(session: Session, broker: Shouting) -> None:
        code = """
import signal
def ring(*_): raise ValueError
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try: llm('sleep 0.4')
except ValueError: print('woken')
print(llm('next'))
"""
        assert await shown(session, code) == "woken\nNEXT\n"

    with_session(act)


def test_a_call_with_too_many_questions_is_ended() -> None:
    async def act(session: Session, broker: Shouting) -> None:
        outcome = await session.run("for n in range(5): llm(str(n))")
        assert outcome.status == "ok"
        outcome = await session.run("while True: llm('x')")
        assert (outcome.status, outcome.why, outcome.fresh) == ("killed", "asks", True)
        assert len(broker.questions) == 5 + 5
        assert await shown(session, "llm('a new worker')") == "'A NEW WORKER'\n"

    with_session(act, asks=5)


def test_a_call_that_is_cancelled_while_it_asks_leaves_the_session_in_step() -> None:
    async def act(session: Session, broker: Shouting) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await session.run("x = 1\ntry: llm('sleep 60')\nexcept RuntimeError as error: print(error)\nllm('on')")
        assert broker.given_up == 1
        await asyncio.sleep(0.1)
        assert await shown(session, "x, llm('after')") == "(1, 'AFTER')\n"
        assert broker.questions == [["sleep 60"], ["after"]]  # what the cancelled call asked on was refused

    with_session(act)


@pytest.mark.parametrize("prompt", ["broken", "too few"])
def test_a_model_that_fails_is_no_fault_of_the_code(prompt: str) -> None:
    async def act(session: Session, broker: Shouting) -> None:
        with pytest.raises(Unanswered) as failed:
            await session.run(f"llm('{prompt}')")
        assert isinstance(failed.value, InfrastructureError)
        with pytest.raises(SessionLost):
            await session.run("1")

    with_session(act)


def test_a_session_that_is_ended_while_it_asks_asks_no_longer() -> None:
    async def act(session: Session, broker: Shouting) -> None:
        running = asyncio.ensure_future(session.run("llm('sleep 60')"))
        while not broker.questions:
            await asyncio.sleep(0.01)
        session.kill()
        with pytest.raises(SessionLost):
            await running
        assert broker.given_up == 1

    with_session(act)


def test_who_waits_for_an_answer_keeps_nobody_from_a_processor() -> None:
    async def do() -> None:
        turns, broker = Turns(1), Shouting()
        slow = Session(agent(asking(b'["sleep 0.5"]')), LIMITS, broker=broker, turns=turns)
        quick = Session(agent(), LIMITS, turns=turns)
        running = asyncio.ensure_future(slow.run("1"))
        while not broker.questions:
            await asyncio.sleep(0.01)
        assert (await asyncio.wait_for(quick.run("2"), 0.3)).output == b"2"
        assert (await running).output == b'{"answers": ["SLEEP 0.5"]}'
        assert turns.busy == 0

    asyncio.run(do())


# Agents that are no honest ones.

LIMITS = SandboxLimits(seconds=5, output_bytes=1000)


def question(request: dict[str, Any], number: Any, blob: bytes, **more: Any) -> bytes:
    return frames.encode({"n": request["n"], "ask": number, **more}, blob)


def told(connection: socket.socket) -> bytes:
    json_length, blob_length = frames.lengths(exactly(connection, frames.HEAD_BYTES))
    assert json.loads(exactly(connection, json_length))["op"] == "told"
    return exactly(connection, blob_length)


def asking(*questions: bytes) -> Callable[[dict[str, Any], bytes, socket.socket], None]:
    """An agent whose runs ask this, and show what they were told."""

    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        said = []
        for number, asked in enumerate(questions, 1):
            connection.sendall(question(request, number, asked))
            said.append(told(connection))
        connection.sendall(fine(request, b" ".join(said)))

    return answering


@pytest.mark.parametrize(
    "blob",
    [b"", b"{}", b"[]", b"1", b"[1]", b"\xff", b'["\\ud800"]', b'["a","b","c","d","e"]', b'["' + b"x" * 1001 + b'"]'],
    ids=lambda blob: repr(blob[:12]),
)
def test_what_code_writes_that_is_no_question_is_refused_and_costs_no_session(blob: bytes) -> None:
    async def do() -> None:
        broker = Shouting()
        session = Session(agent(asking(blob, b'["fine"]')), LIMITS, broker=broker)
        refused, answered = (await session.run("1")).output.split(b"} ")
        assert set(json.loads(refused + b"}")) == {"refused"}
        assert json.loads(answered) == {"answers": ["FINE"]}
        assert broker.questions == [["fine"]]
        session.kill()

    asyncio.run(do())


LIES: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "a later number": lambda r: question(r, 2, b'["a"]'),
    "an earlier number": lambda r: question(r, 0, b'["a"]'),
    "a number in words": lambda r: question(r, "1", b'["a"]'),
    "a true number": lambda r: question(r, True, b'["a"]'),
    "of another call": lambda r: question({"n": r["n"] + 1}, 1, b'["a"]'),
    "with more": lambda r: question(r, 1, b'["a"]', status="ok"),
    "longer than offered": lambda r: question(r, 1, b"x" * 8001),
    "an answer longer than allowed": lambda r: fine(r, b"x" * 7000),
    "two at once": lambda r: question(r, 1, b'["sleep 9"]') + question(r, 2, b'["b"]'),
    "the same twice": lambda r: question(r, 1, b'["sleep 9"]') * 2,
    "a flood": lambda r: question(r, 1, b'["sleep 9"]') + b"x" * 200_000,
    "four gigabytes": lambda r: b"\0\0\0\2\xff\xff\xff\xff{}",
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_a_question_that_no_agent_asks_ends_the_session(lie: str) -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(LIES[lie](request))

    async def do() -> None:
        broker = Shouting()
        session = Session(agent(answering), LIMITS, broker=broker)
        began = time.monotonic()
        with pytest.raises(SessionLost):
            await session.run("1")
        assert time.monotonic() - began < 8
        assert len(broker.questions) == broker.given_up <= 1

    asyncio.run(do())


def test_nobody_asks_outside_a_run_or_without_an_offer() -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        connection.sendall(question(request, 1, b'["a"]'))

    async def do(broker: Shouting | None, act: Callable[[Session], Awaitable[Any]]) -> None:
        with pytest.raises(SessionLost):
            await act(Session(agent(answering), LIMITS, broker=broker))
        assert broker is None or broker.questions == []

    asyncio.run(do(None, lambda session: session.run("1")))
    asyncio.run(do(Shouting(), lambda session: session.read("a")))
    asyncio.run(do(Shouting(), lambda session: session.write("a", b"")))


def test_an_agent_whose_code_cannot_ask_says_so_before_anything_is_done() -> None:
    async def do() -> None:
        session = Session(agent(), LIMITS, broker=Shouting())
        with pytest.raises(ConfigurationError, match="with this back-end, code in the sandbox cannot ask"):
            await session.hello(SandboxSpec(LIMITS))

    asyncio.run(do())


def test_the_end_of_a_call_comes_before_the_answer_to_what_it_asked() -> None:
    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        if blob == b"asks":
            connection.sendall(question(request, 1, b'["sleep 60"]'))
            connection.sendall(fine(request, b"over"))
        else:
            connection.sendall(fine(request, b"next"))

    async def do() -> None:
        broker = Shouting()
        session = Session(agent(answering), LIMITS, broker=broker, turns=Turns(1))
        assert (await session.run("asks")).output == b"over"
        assert broker.given_up == 1
        assert (await session.run("1")).output == b"next"
        session.kill()

    asyncio.run(do())


def test_an_agent_is_not_lost_because_its_code_asks_often_and_may_ask_only_so_often() -> None:
    """What frames take on their way is in no clock of the agent's."""

    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        for number in range(1, int(blob) + 1):
            time.sleep(0.1)
            connection.sendall(question(request, number, b'["a"]'))
            told(connection)
        connection.sendall(fine(request, b"done"))

    async def do() -> None:
        quick = SandboxLimits(seconds=0.1, output_bytes=1000)
        session = Session(agent(answering), quick, broker=Shouting(asks=12), slack=0.2)
        assert (await session.run("12")).output == b"done"  # 1.2 s in all, and 0.8 s between two answers are allowed
        session = Session(agent(answering), quick, broker=Shouting(asks=12), slack=0.2)
        with pytest.raises(SessionLost, match="it asked more than 12 questions in a call"):
            await session.run("13")

    asyncio.run(do())


@pytest.mark.parametrize("offer", [{"prompts": 0}, {"bytes": 2**40}, {"asks": True}, {"characters": -1}, {"asks": 1.5}])
def test_an_offer_is_whole_numbers_that_frames_can_carry(offer: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"sandbox offer {next(iter(offer))}"):
        Offer(**offer)
