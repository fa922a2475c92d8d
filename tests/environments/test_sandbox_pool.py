"""The pool: sessions kept ready whatever loop asks, back-ends replaced when they are old or gone, and nothing left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sandbox_fakes import FakeBackend, World, fine, honest

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.sessions import keeper, memory_guard
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, SessionLost, SessionSpent, Unavailable
from mcpgym_environments.python_sandbox.sessions.pool import Pool
from mcpgym_environments.python_sandbox.sessions.session import Session


@pytest.fixture(autouse=True)
def only_these_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory guard looks after the pools of each test alone, not after those that this process keeps for others."""
    monkeypatch.setattr(memory_guard.GUARD, "_flocks", weakref.WeakSet())


def until(true: Callable[[], Any], seconds: float = 10.0) -> None:
    """Wait for what another thread does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.005)


@contextlib.contextmanager
def pool_of(world: World, **options: Any) -> Iterator[Pool]:
    made = Pool(FakeBackend(world), SandboxSpec(), **{"ready": 2, **options})
    try:
        yield made
    finally:
        asyncio.run(made.close())


def ready(pool: Pool) -> float:
    return pool.gauges()["sessions_ready"]


def test_a_pool_serves_one_event_loop_after_another_and_several_at_once() -> None:
    async def visit(seed: int) -> bytes:
        session = await pool.open(seed)
        try:
            return (await session.run(f"{seed}")).output
        finally:
            session.kill()

    with pool_of(World()) as pool:
        for seed in range(4):
            assert asyncio.run(visit(seed)) == f"{seed}".encode()
        answers: list[bytes] = []
        threads = [threading.Thread(target=lambda n=n: answers.append(asyncio.run(visit(n)))) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert sorted(answers) == [f"{n}".encode() for n in range(8)]
        assert pool.counts.starts == 1


def test_sessions_are_made_ready_while_no_loop_of_the_callers_runs() -> None:
    world = World()
    with pool_of(world, ready=3) as pool:
        asyncio.run(pool.start())
        until(lambda: ready(pool) == 3)
        before = pool.counts.cold
        session = asyncio.run(pool.open())
        assert pool.counts.cold == before  # it was there
        until(lambda: ready(pool) == 3)
        session.kill()


def test_the_more_are_opened_the_more_are_kept_ready_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "QUIET_SECONDS", 0.0)

    async def burst() -> None:
        for session in await asyncio.gather(*(pool.open() for _ in range(40))):
            session.kill()

    with pool_of(World(), ready=None) as pool:
        asyncio.run(pool.start())
        until(lambda: ready(pool) == keeper.LEAST_READY)
        asyncio.run(burst())
        until(lambda: keeper.LEAST_READY < ready(pool) <= keeper.MOST_READY)
        until(lambda: ready(pool) <= keeper.LEAST_READY + 25)  # and, left alone, they are let go one by one
        assert pool.gauges()["sessions_live"] == 0


def test_each_session_is_told_its_own_seed_and_the_pools_limits() -> None:
    told: list[dict[str, Any]] = []

    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        if request["op"] == "hello":
            told.append(request["spec"])
        honest(request, blob, connection)

    async def work() -> None:
        for seed in (0, 5, 2**63 - 1):
            (await pool.open(seed)).kill()
        for odd in (-1, 2**63, 1.0, True):
            with pytest.raises(ConfigurationError, match="sandbox seed"):
                await pool.open(odd)  # type: ignore[arg-type]

    with pool_of(World(answering)) as pool:
        asyncio.run(work())
    assert [spec["seed"] for spec in told] == [0, 5, 2**63 - 1]
    assert told[0]["limits"]["seconds"] == 10.0


def test_a_machine_that_allows_no_more_sessions_loses_episodes_and_is_not_configured_wrong() -> None:
    world = World()

    async def work() -> None:
        (await pool.open()).kill()
        world.broken, world.unavailable = {1}, "user namespaces are used up"
        with pytest.raises(SessionLost, match="could be opened: user namespaces are used up"):
            await pool.open()
        world.unavailable = ""
        (await pool.open()).kill()

    with pool_of(world, ready=0) as pool:
        asyncio.run(work())


def test_a_machine_without_the_back_end_is_told_why_each_time_until_it_has_it() -> None:
    world = World(unavailable="user namespaces are switched off")

    async def work() -> None:
        for ask in (pool.start, pool.open):
            with pytest.raises(Unavailable, match=r"switched off\. Do something about it\."):
                await ask()
        world.unavailable = ""
        assert (await pool.start())["isolation"] == "namespaces"
        (await pool.open()).kill()

    with pool_of(world) as pool:
        asyncio.run(work())


def test_a_session_that_died_while_it_waited_is_passed_over() -> None:
    world = World()
    with pool_of(world, ready=2) as pool:
        asyncio.run(pool.start())
        until(lambda: ready(pool) == 2)
        for stream in world.opened:
            stream.kill()
        session = asyncio.run(pool.open())
        assert asyncio.run(session.run("1")).output == b"1"
        session.kill()


def test_a_dead_fork_server_is_replaced_and_its_sessions_are_lost() -> None:
    world = World()

    async def work() -> None:
        old = await pool.open()
        world.broken.add(1)
        for stream in list(world.opened):
            stream.kill()  # as the kernel does
        new = await pool.open()
        assert (await new.run("1")).output == b"1"
        with pytest.raises(SessionLost):
            await old.run("1")
        assert (pool.counts.starts, pool.counters.lost) == (2, pool.counters.lost)
        new.kill()
        old.kill()

    with pool_of(world, ready=1) as pool:
        asyncio.run(work())
        until(lambda: 1 in world.closed)


def test_what_opens_nothing_even_when_it_is_started_again_is_an_infrastructure_failure() -> None:
    world = World(broken=set(range(1, 100)))
    with pool_of(world, ready=0) as pool, pytest.raises(SessionLost, match="the fork server is gone"):
        asyncio.run(pool.open())


def test_a_back_end_that_is_old_is_replaced_and_closed_when_its_last_session_ends() -> None:
    world = World()

    async def work() -> None:
        first = await pool.open()
        for _ in range(8):
            (await pool.open()).kill()
        assert pool.counts.starts > 1
        assert 1 not in world.closed
        assert (await first.run("still here")).output == b"still here"
        first.kill()

    with pool_of(world, ready=0, recycled_after=4) as pool:
        asyncio.run(work())
        until(lambda: 1 in world.closed)


def test_what_is_kept_ready_of_an_old_back_end_goes_with_it() -> None:
    world = World()
    with pool_of(world, ready=2, recycled_after=2) as pool:
        asyncio.run(pool.start())
        until(lambda: ready(pool) == 2)
        session = asyncio.run(pool.open())
        until(lambda: pool.counts.starts == 2)
        assert 1 not in world.closed
        session.kill()  # the last that anybody has
        until(lambda: 1 in world.closed)


def test_a_cancelled_opening_leaves_its_session_to_the_next() -> None:
    world, go_on = World(), threading.Event()
    world.opening = lambda: go_on.wait(20) and None

    async def work() -> None:
        async with asyncio.timeout(20):
            opening = asyncio.ensure_future(pool.open())
            await asyncio.sleep(0.05)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            go_on.set()
            session = await pool.open()
            assert len(world.opened) == 1  # the very one
            session.kill()

    with pool_of(world, ready=0) as pool:
        asyncio.run(pool.start())
        asyncio.run(work())


def test_ended_and_forgotten_sessions_are_ended_and_released() -> None:
    world = World()

    async def work() -> None:
        killed, forgotten = await pool.open(), await pool.open()
        streams = [killed.stream, forgotten.stream]
        killed.kill()
        del killed, forgotten
        gc.collect()
        async with asyncio.timeout(20):
            while not all(stream in world.ended for stream in streams):
                await asyncio.sleep(0.01)

    with pool_of(world, ready=0) as pool:
        asyncio.run(work())
        assert pool.gauges()["sessions_live"] == 0


def test_a_forgotten_pool_ends_all_it_has_and_its_thread() -> None:
    world = World()
    pool = Pool(FakeBackend(world), SandboxSpec(), ready=2)
    session: Session | None = asyncio.run(pool.open())
    thread = pool._keeper.home._thread
    assert thread is not None
    del pool
    gc.collect()
    assert session is not None
    assert asyncio.run(session.run("1")).output == b"1"  # a session keeps its pool
    session = None
    gc.collect()
    until(lambda: not thread.is_alive())
    assert world.closed == [1]
    for stream in world.opened:
        with pytest.raises(EOFError):
            asyncio.run(stream.receive(1))


def test_a_closed_pool_has_ended_everything_and_opens_nothing() -> None:
    world = World()

    async def work() -> None:
        session = await pool.open()
        await pool.close()
        await pool.close()
        for call in (session.run("1"), pool.open(), pool.open(3)):
            with pytest.raises(SessionLost):
                await call

    pool = Pool(FakeBackend(world), SandboxSpec(), ready=2)
    asyncio.run(work())
    thread = pool._keeper.home._thread
    assert thread is not None
    assert not thread.is_alive()
    assert world.closed == [1]


def test_calls_over_all_sessions_execute_so_many_at_once() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        nonlocal now, most
        if request["op"] == "run":
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.02)
            with lock:
                now -= 1
        connection.sendall(fine(request, blob))

    async def work() -> None:
        sessions = await asyncio.gather(*(pool.open() for _ in range(9)))
        await asyncio.gather(*(session.run("1") for session in sessions))
        for session in sessions:
            session.kill()

    with pool_of(World(answering), executing=3) as pool:
        asyncio.run(work())
    assert most == 3


@pytest.mark.parametrize("odd", [{"executing": 0}, {"ready": -1}, {"recycled_after": 0}])
def test_numbers_out_of_range_are_refused(odd: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError, match="a pool: "):
        Pool(FakeBackend(World()), SandboxSpec(), **odd)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_of_the_server_ends_none_of_its_sessions_and_may_not_use_its_pool() -> None:
    code = """
    import asyncio, os, sys
    sys.path.insert(0, sys.argv[1])
    from sandbox_fakes import FakeBackend, World
    from mcpgym.errors import ConfigurationError
    from mcpgym_environments.python_sandbox.sessions.pool import Pool
    from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec
    world = World()
    pool = Pool(FakeBackend(world), SandboxSpec(), ready=1)
    session = asyncio.run(pool.open())
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(pool.open())
        except ConfigurationError:
            sys.exit(7)  # with all that runs at an exit
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    print(asyncio.run(session.run("alive")).output.decode(), world.closed)
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), str(Path(__file__).parent)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("alive []\n", 0), done.stderr


@pytest.mark.parametrize("how", ["exit", "raise", "kill"])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks at /proc")
def test_no_process_is_left_however_a_server_ends(how: str) -> None:
    """With plain processes for sessions: what a fork server does when its server dies is tested with it."""
    code = """
    import asyncio, os, signal, sys
    from mcpgym_environments.python_sandbox.backends.unsafe_local import UnsafeLocal
    from mcpgym_environments.python_sandbox.sessions.pool import Pool
    from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec
    pool = Pool(UnsafeLocal(), SandboxSpec(), ready=1)
    sessions = [asyncio.run(pool.open()) for _ in range(2)]
    print(*(session.stream.process for session in sessions), flush=True)
    if sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[1] == "raise":
        raise SystemExit(3)
    """
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), how], stdout=subprocess.PIPE, text=True
    ) as server:
        said, _ = server.communicate(timeout=60)
    assert server.returncode == {"exit": 0, "raise": 3, "kill": -signal.SIGKILL}[how]
    processes = [int(word) for word in said.split()]
    assert len(processes) == 2
    until(lambda: not any(map(_runs, processes)), 5.0)


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


# The guard of the machine's memory.


class Sheep:
    """A session that says how much it holds."""

    def __init__(self, process: int | None) -> None:
        self.process = process
        self.why = ""

    def sacrifice(self, why: str, held: int) -> None:
        self.why = why


class Flock:
    def __init__(self, sizes: dict[int, int]) -> None:
        self.sheep = [*map(Sheep, sizes), Sheep(None)]

    def guarded(self) -> list[Sheep]:
        return self.sheep


@pytest.mark.parametrize(
    ("left", "sizes", "ended"),
    [
        (0.5, {1: 5000}, []),
        (0.09, {1: 100, 2: 3000, 3: 200}, [2]),
        (0.09, {1: 10, 2: 20}, []),  # they hold next to nothing: others fill the machine
        (0.09, dict.fromkeys(range(1, 31), 50), [1]),  # each little, all together a tenth and more
        (0.09, {}, []),
    ],
)
def test_the_largest_session_is_ended_when_memory_is_short_and_sessions_hold_it(
    left: float, sizes: dict[int, int], ended: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = 10_000 << 20
    monkeypatch.setattr(memory_guard, "available", lambda: (int(left * whole), whole))
    monkeypatch.setattr(memory_guard, "resident", lambda process: sizes[process] << 20)
    guard, flock = memory_guard.MemoryGuard(), Flock(sizes)
    guard.watch(flock)
    assert guard.look() == bool(ended)
    assert [one.process for one in flock.sheep if one.why] == ended
    assert guard.killed == len(ended)
    assert not guard.look()  # at once again: the kernel has not yet freed anything


@pytest.mark.parametrize(("size", "spent"), [(50 << 30, True), (300 << 20, False)])
def test_a_session_that_was_ended_for_memory_says_so_and_whose_doing_it_was(
    size: int, spent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        session = await pool.open()
        monkeypatch.setattr(type(session.stream), "process", 1)
        monkeypatch.setattr(memory_guard, "available", lambda: (100 << 20, 100 << 30))
        monkeypatch.setattr(memory_guard, "resident", lambda process: size)
        call = asyncio.ensure_future(session.run("wait", seconds=60))
        said = f"100 of 102400 MB of memory left, and it held most, {size >> 20} MB"
        for what in (call, session.run("1")):
            with pytest.raises(SessionLost, match=said) as caught:
                await what
            assert isinstance(caught.value, SessionSpent) == spent
        assert pool.gauges()["sessions_ended_for_memory"] >= 1

    def answering(request: dict[str, Any], blob: bytes, connection: socket.socket) -> None:
        if blob != b"wait":
            honest(request, blob, connection)

    with pool_of(World(answering), ready=0) as pool:
        asyncio.run(work())


def test_ready_sessions_that_the_memory_guard_took_are_given_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with pool_of(World(), ready=4) as pool:
        asyncio.run(pool.start())
        until(lambda: ready(pool) == 4)
        with monkeypatch.context() as patched:
            patched.setattr(memory_guard, "available", lambda: (100 << 20, 100 << 30))
            patched.setattr(memory_guard, "resident", lambda process: 300 << 20)
            patched.setattr(type(next(iter(pool._keeper.guarded())).stream), "process", 1)  # type: ignore[attr-defined]
            until(lambda: pool.counts.ended >= 1)
        until(lambda: ready(pool) == 4)
        before = pool.counters.lost
        for session in [asyncio.run(pool.open()) for _ in range(4)]:
            assert asyncio.run(session.run("1")).output == b"1"
        assert pool.counters.lost == before


def test_ready_sessions_that_died_are_passed_over_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "TICK_SECONDS", 3600.0)
    with pool_of(World(), ready=8) as pool:
        asyncio.run(pool.start())
        until(lambda: ready(pool) == 8)
        for held in list(pool._keeper.guarded()):
            held.stream.kill()  # type: ignore[attr-defined]
        assert asyncio.run(asyncio.run(pool.open()).run("1")).output == b"1"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it reads /proc")
def test_what_a_tree_of_processes_holds_is_counted() -> None:
    inner = "x = bytearray(30 << 20); print(1, flush=True); input()"
    code = f"import subprocess, sys; x = bytearray(40 << 20); subprocess.run([sys.executable, '-c', {inner!r}])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        held = memory_guard.resident(parent.pid)
        assert parent.stdin is not None
        parent.stdin.close()
    assert 70 << 20 < held < 140 << 20
    assert memory_guard.resident(parent.pid) == 0


def test_a_control_group_that_leaves_less_than_the_machine_counts(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "meminfo").write_text("MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n")
    (tmp_path / "self" / "cgroup").write_text("0::/box\n")
    (tmp_path / "box").mkdir()
    for name, text in (("max", "1000000"), ("current", "950000"), ("stat", "anon 1\ninactive_file 10000\n")):
        (tmp_path / "box" / f"memory.{name}").write_text(text)
    monkeypatch.setattr(memory_guard, "_PROC", tmp_path)
    monkeypatch.setattr(memory_guard, "_CGROUPS", tmp_path)
    assert memory_guard.available() == (60_000, 1_000_000)
    (tmp_path / "box" / "memory.max").write_text("max\n")
    assert memory_guard.available() == (900_000 << 10, 1_000_000 << 10)
    (tmp_path / "meminfo").unlink()
    assert memory_guard.available() is None
