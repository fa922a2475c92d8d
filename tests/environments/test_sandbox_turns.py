"""Turns: so many calls at once, over whatever event loops, none lost and none doubled."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sandbox_fakes import agent, fine

from mcpgym_environments.python_sandbox.sessions.backend import SandboxLimits
from mcpgym_environments.python_sandbox.sessions.session import Session
from mcpgym_environments.python_sandbox.sessions.turns import Turns


def test_so_many_calls_execute_at_once_and_time_in_line_is_no_time_of_a_call() -> None:
    now, most = 0, 0
    lock = threading.Lock()

    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.2)
        with lock:
            now -= 1
        connection.sendall(fine(request, blob))

    async def work() -> None:
        turns = Turns(2)
        sessions = [Session(agent(answering), SandboxLimits(), turns=turns, slack=0.3) for _ in range(12)]
        outcomes = await asyncio.gather(*(one.run("1", seconds=0.1) for one in sessions))  # the last waits for 1 s
        assert {outcome.status for outcome in outcomes} == {"ok"}
        assert (most, turns.busy, turns.waiting) == (2, 0, 0)
        for one in sessions:
            one.kill()

    asyncio.run(work())


@given(st.lists(st.sampled_from(["ask", "ask", "cancel", "leave", "turn"]), min_size=5, max_size=60))
@settings(max_examples=150, deadline=None)
def test_turns_are_never_lost_or_doubled(acts: list[str]) -> None:
    async def work() -> None:
        turns, inside, leave = Turns(2), 0, asyncio.Event()
        tasks: list[asyncio.Task[None]] = []

        async def one() -> None:
            nonlocal inside
            async with turns:
                inside += 1
                assert inside <= 2
                try:
                    await leave.wait()
                finally:
                    inside -= 1

        for number, act in enumerate(acts):
            if act == "ask":
                tasks.append(asyncio.ensure_future(one()))
            elif act == "cancel" and tasks:
                tasks[number % len(tasks)].cancel()
            elif act == "leave":
                leave.set()
                leave.clear()
            else:
                await asyncio.sleep(0)
        leave.set()
        ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        assert not any(isinstance(error, AssertionError) for error in ended)
        assert (turns.busy, turns.waiting, inside) == (0, 0, 0)

    asyncio.run(work())


def test_turns_go_from_loop_to_loop() -> None:
    turns, inside, order = Turns(1), 0, []

    def work(name: int) -> None:
        async def take() -> None:
            nonlocal inside
            for _ in range(50):
                async with turns:
                    inside += 1
                    assert inside == 1
                    order.append(name)
                    await asyncio.sleep(0)
                    inside -= 1

        asyncio.run(take())

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert (len(order), turns.busy, turns.waiting) == (200, 0, 0)


def test_a_turn_passes_over_who_is_gone_with_its_loop() -> None:
    turns = Turns(1)

    async def wait() -> None:
        async with turns:
            pass

    async def hold() -> None:
        async with turns:
            loop = asyncio.new_event_loop()
            task = loop.create_task(wait())
            await asyncio.to_thread(loop.run_until_complete, asyncio.sleep(0))
            assert turns.waiting == 1
            loop.close()  # and nobody cancelled what waits in it
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    asyncio.run(hold())
    assert turns.busy == 0
    asyncio.run(wait())


def test_a_turn_on_its_way_to_a_loop_that_is_closed_comes_back() -> None:
    turns = Turns(1)

    async def wait() -> None:
        async with turns:
            pass

    async def hold() -> None:
        async with turns:
            loop = asyncio.new_event_loop()
            task = loop.create_task(wait())
            await asyncio.to_thread(loop.run_until_complete, asyncio.sleep(0))
        loop.close()  # the turn was sent there, and has not come
        task._log_destroy_pending = False  # type: ignore[attr-defined]

    asyncio.run(hold())
    asyncio.run(asyncio.wait_for(wait(), 5))
    assert turns.busy == 0
