"""What makes sessions small and calls quick, and that nothing is given up for it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from sandbox_agents import INSIDE, missing, pool, with_session

from mcpgym_environments.python_sandbox.jail import cells, frames
from mcpgym_environments.python_sandbox.sessions.session import Session

MOST_KB = 5_500
"""A session holds about 3,700 kilobytes for itself; before its memory was put in order it held 7,200."""
ALIVE = (
    "import os\nsum(open(f'/proc/{n}/stat').read().rpartition(')')[2].split()[0] not in 'ZX'"
    " for n in os.listdir('/proc') if n.isdigit())"
)
FORKS = "import os\nfor _ in range(%d):\n    if not (child := os.fork()): os._exit(0)\n    os.waitpid(child, 0)"
STAYS = "import os, time\nif not os.fork():\n    while True: open('beat', 'a').write('x'); time.sleep(0.005)"


async def still(session: Session) -> bool:
    """Whether nothing of the session runs between calls: the child of ``STAYS`` would write."""
    before = await session.read("beat")
    await asyncio.sleep(0.06)
    return before == await session.read("beat")


@pytest.mark.parametrize("forks", [0, 3, 299])
def test_what_a_call_leaves_behind_is_found_however_many_processes_there_were(forks: int) -> None:
    async def act(session: Session) -> None:
        assert (await session.run(FORKS % forks)).status == "ok"
        assert (await session.run("1 + 1")).output == b"2\n"
        assert (await session.run(STAYS + "\ntime.sleep(0.05)")).status == "ok"
        assert await still(session)
        alive = (await session.run(ALIVE)).output
        assert alive == b"2\n", alive  # init and the worker
        assert await still(session)

    with_session(act, INSIDE)


@pytest.mark.parametrize("forks", [0, 2])
def test_a_thread_that_forks_after_its_call_is_stopped_with_it(forks: int) -> None:
    later = "import threading\nthreading.Timer(0.02, lambda: exec(STAYS)).start()\n"

    async def act(session: Session) -> None:
        await session.run(f"STAYS = {STAYS!r}")
        await session.run(FORKS % forks)
        assert (await session.run(later)).status == "ok"
        await asyncio.sleep(0.1)
        assert await session.list() == []  # the timer waits too
        await session.run("import time; time.sleep(0.1)")
        assert await still(session)

    with_session(act, INSIDE)


def test_processor_time_of_ended_children_counts_in_their_call_alone() -> None:
    burn = "import os, time\nif not os.fork():\n    while time.process_time() < 0.25: pass\n    os._exit(0)\nos.wait()"

    async def act(session: Session) -> None:
        for _ in range(2):
            assert (await session.run(burn, cpu_seconds=5)).status == "ok"
        assert (await session.run("import time; time.sleep(0.15); 1", cpu_seconds=0.1)).output == b"1\n"
        assert (await session.run("while True: pass", cpu_seconds=0.1)).why == "cpu"

    with_session(act, INSIDE)


def test_a_channel_that_code_made_not_to_block_is_made_to_again() -> None:
    code = "import os\nfor n in range(3, 10):\n    try: os.set_blocking(n, False)\n    except OSError: pass"

    async def act(session: Session) -> None:
        for _ in range(3):
            assert (await session.run(code)).status == "ok"
            await asyncio.sleep(0.05)  # the worker reads before there is a request
            assert (await session.run("1 + 1")).output == b"2\n"

    with_session(act, INSIDE)


def test_a_session_is_small() -> None:
    if why := missing(INSIDE):
        pytest.skip(why)

    async def measured() -> int:
        session = await pool(INSIDE).open(1)
        try:
            for _ in range(3):
                assert (await session.run("1 + 1")).output == b"2\n"
            first = session.stream.process
            assert first is not None
            pids = [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]
            return sum(_own(pid) for pid in pids)
        finally:
            session.kill()

    if os.geteuid() != 0:
        pytest.skip("only root reads what its sessions hold")
    assert asyncio.run(measured()) < MOST_KB


def _own(pid: int) -> int:
    """Kilobytes that the process shares with no other, or with its parent alone."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))


def test_the_seed_comes_with_the_first_call_that_runs_code() -> None:
    code = "import random; random.random()"

    async def act(session: Session) -> list[bytes]:
        await session.write("a.txt", b"x")
        await session.list()
        first = (await session.run(code)).output
        await session.reset()
        again = (await session.run(code)).output
        await session.reset(8)
        return [first, again, (await session.run(code)).output]

    first, again, other = with_session(act, seed=7)
    assert first == again != other
    assert with_session(act, seed=8)[0] == other

    async def at_once(session: Session) -> bytes:
        await session.reset()
        return (await session.run(code)).output

    assert with_session(at_once, seed=7) == first


@pytest.mark.parametrize(
    "change",
    [
        "import builtins; builtins.len = lambda x: 99",
        "import builtins; vars(builtins).update(len=None)",
        "import builtins; del builtins.len",
        "class T:\n    def __repr__(self):\n        import builtins; builtins.len = None; return 'T'\nT()",
        "import threading, builtins, time\n"
        "threading.Thread(target=lambda: (time.sleep(.05), setattr(builtins, 'len', None)), daemon=True).start()\n"
        "time.sleep(0.1)",
    ],
)
def test_builtins_that_a_cell_replaced_are_put_back(change: str) -> None:
    async def act(session: Session) -> None:
        for _ in range(2):
            assert (await session.run("len([1, 2])")).output == b"2\n"
            await session.run(change)
            assert (await session.run("len([1, 2])")).output == b"2\n"
            assert (await session.run("_ + 1")).output == b"3\n"

    with_session(act)


@pytest.mark.parametrize(
    "code", ["1", " 1", "1;", "x = 1", "yield", "1 +", "print 1", "(1)  # y", "f(a=1)", "not 1", ""]
)
def test_a_cell_of_one_expression_is_compiled_as_any_other(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> object:
        try:
            return [None if part is None else (part.co_code, part.co_consts) for part in cells.compiled(code, "c", 0)]
        except SyntaxError as error:
            return error.msg, error.lineno, error.offset

    quick = told()
    monkeypatch.setattr(cells, "_one_expression", lambda *_: None)
    assert quick == told()


def test_a_frame_reads_the_same_whatever_wrote_it() -> None:
    header = {"n": 1, "why": 'ü"\\\x00\ud800', "list": [None, True, 1.5, {"k": []}]}
    frame = frames.encode(header, b"blob")
    text, blob = frames.lengths(frame[: frames.HEAD_BYTES])
    assert frames.header(frame[frames.HEAD_BYTES : frames.HEAD_BYTES + text]) == header
    assert blob == 4
    assert frames.header(b' {"n" : 1}\n') == {"n": 1}
    circular: dict[str, Any] = {}
    circular["x"] = circular
    for bad in (circular, {"x": float("nan")}, {"x": object()}):
        with pytest.raises(frames.FrameError):
            frames.encode(bad)
    for odd in (b"", b"{", b'{"n":1}x', b"1", b'{"n":NaN}', b'{"n":1e999}'):
        with pytest.raises(frames.FrameError):
            frames.header(odd)
