"""What every sandbox back-end must do: the same calls against any of them.

Nothing here is hostile: it also runs where there is no boundary. What hostile code may not do is tested elsewhere.
"""

from __future__ import annotations

import asyncio
import io
import os
import socket
import tarfile
import threading
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest

from mcpgym_environments.python_sandbox.sessions.backend import (
    LEVELS,
    Backend,
    SandboxLimits,
    SandboxSpec,
    SessionLost,
    Stream,
)
from mcpgym_environments.python_sandbox.sessions.session import MISSING, FileFault, Session

LIMITS = SandboxLimits(seconds=5.0, cpu_seconds=5.0, workspace_bytes=4 << 20, file_bytes=8 << 20)
SECRET = "MCPGYM_TEST_SECRET"


@dataclass(frozen=True)
class Promises:
    """In what back-ends may differ."""

    interrupts: bool = True
    """Whether code past its time is interrupted first and keeps its variables."""
    no_network: bool = True
    """Whether the code reaches no network."""
    clean: bool = True
    """Whether nothing of the server's environment variables is visible."""


class Place:
    """A started back-end in which checks open sessions."""

    def __init__(self, backend: Backend, promises: Promises) -> None:
        self.backend = backend
        self.promises = promises
        self._opened: list[Stream] = []

    async def session(self, seed: int = 0, limits: SandboxLimits = LIMITS) -> Session:
        spec = SandboxSpec(limits, seed=seed)
        stream = await self.backend.open(spec)
        self._opened.append(stream)
        session = Session(stream, limits, slack=20.0)
        await session.hello(spec)
        return session

    async def end(self) -> None:
        for stream in self._opened:
            await self.backend.kill(stream)
        self._opened.clear()


Check = Callable[[Place], Awaitable[None]]


async def cells_share_their_variables_and_show_what_a_notebook_shows(place: Place) -> None:
    session = await place.session()
    first = await session.run("import sys\nx = 20\nprint('out'); print('err', file=sys.stderr)\nx + 1")
    assert (first.status, first.fresh, first.output) == ("ok", False, b"out\nerr\n21\n")
    second = await session.run("def f(n):\n    return n / (x - 20)\nf(1)")
    assert second.status == "error"
    text = second.output.decode()
    assert "<cell 2>" in text
    assert "return n / (x - 20)" in text
    assert "mcpgym" not in text
    assert (await session.run("x")).output == b"20\n"
    assert (await session.run("input()")).output.rstrip().endswith(b"EOFError: EOF when reading a line")


async def files_are_the_same_for_tools_and_code(place: Place) -> None:
    session = await place.session()
    data = bytes(range(256)) * 1000
    await session.write("data/in.bin", data)
    ran = await session.run("d = open('data/in.bin', 'rb').read()\nopen('out.txt', 'w').write('ü' * 3)\nlen(d), sum(d)")
    assert ran.output == f"({len(data)}, {sum(data)})\n".encode()
    assert await session.read("out.txt") == "üüü".encode()
    assert await session.read_part("data/in.bin", 255_990, 5) == (data[255_990:255_995], 5)
    entries = {(entry.path, entry.kind, entry.size) for entry in await session.list()}
    assert entries == {("data", "directory", 0), ("data/in.bin", "file", len(data)), ("out.txt", "file", 6)}
    with tarfile.open(fileobj=io.BytesIO(await session.export())) as archive:
        assert sorted(archive.getnames()) == ["data", "data/in.bin", "out.txt"]
    for path in ("missing", "../x", "/etc/hostname", "data"):
        with pytest.raises(FileFault, match=r"\w"):
            await session.read(path)
    assert (await session.run("import os; os.getcwd()")).output.strip().endswith(b"work'")


async def values_come_back_as_they_were(place: Place) -> None:
    session = await place.session()
    await session.run("def same(*a): return list(a)\ndef pair(): return (1, 2)\ndef bad(): return 1 / 0")
    values = [None, True, 1, -(10**30), 1.5, 0.1, "ü\u2028\0", [], {}, {"a": [1, {"b": None}]}]
    given = await session.evaluate("same", values)
    assert given.outcome.status == "ok"
    assert repr(given.value) == repr(values)
    tuple_ = await session.evaluate("pair", [])
    assert (tuple_.outcome.status, tuple_.value) == ("error", MISSING)
    assert "tuple" in (tuple_.outcome.why or "")
    assert (await session.evaluate("bad", [])).outcome.status == "error"
    assert (await session.evaluate("nowhere", [])).value is MISSING


async def code_past_its_time_is_stopped(place: Place) -> None:
    session = await place.session()
    await session.run("x = 1; open('kept', 'w').write('k')")
    stopped = await session.run("while True: pass", seconds=0.4)
    assert stopped.why == "timeout"
    assert (stopped.status, stopped.fresh) == (("timeout", False) if place.promises.interrupts else ("killed", True))
    assert 300 <= stopped.milliseconds < 5000
    after = await session.run("x")
    assert after.status == ("ok" if place.promises.interrupts else "error")
    assert await session.read("kept") == b"k"


async def what_heeds_no_interrupt_is_killed(place: Place) -> None:
    session = await place.session()
    await session.run("x = 1; open('kept', 'w').write('k')")
    killed = await session.run(
        "import time\nwhile True:\n    try:\n        while True: time.sleep(0.01)\n    except KeyboardInterrupt: pass",
        seconds=0.3,
    )
    assert (killed.status, killed.why, killed.fresh) == ("killed", "timeout", True), killed
    assert (await session.run("x")).status == "error"
    assert await session.read("kept") == b"k"


async def processor_time_is_limited(place: Place) -> None:
    session = await place.session()
    spent = await session.run("while True: pass", seconds=30.0, cpu_seconds=0.4)
    assert spent.status in ("timeout", "killed")
    assert spent.why == "cpu"
    assert (await session.run("1 + 1")).output == b"2\n"


async def code_that_ends_its_process_leaves_its_files(place: Place) -> None:
    session = await place.session()
    await session.run("x = 1; open('kept', 'w').write('k')")
    crashed = await session.run("import os; print('before', flush=True); os._exit(3)")
    assert (crashed.status, crashed.why, crashed.fresh) == ("crashed", "exit 3", True)
    assert crashed.output == b"before\n"
    assert (await session.run("x")).status == "error"
    assert await session.read("kept") == b"k"


async def long_output_is_cut_in_the_middle(place: Place) -> None:
    session = await place.session(limits=replace(LIMITS, output_bytes=1000))
    long = await session.run("print('a' * 5000 + 'b' * 5000)")
    assert long.status == "ok"
    assert long.output == b"a" * 500 + b"b" * 499 + b"\n"
    assert long.omitted == 9001


async def memory_is_limited(place: Place) -> None:
    session = await place.session()
    greedy = await session.run("len(bytearray(3 << 30))")
    assert greedy.status != "ok"
    assert (await session.run("1 + 1")).output == b"2\n"


async def the_workspace_is_limited(place: Place) -> None:
    session = await place.session()
    full = await session.run(
        "import time\nfor i in range(60):\n"
        "    with open(f'f{i}', 'wb') as f: f.write(bytes(1 << 20))\n"
        "    time.sleep(0.03)"
    )
    assert full.status in ("error", "killed"), full
    assert sum(entry.size for entry in await session.list()) < 60 << 20
    await session.reset()
    assert await session.list() == []
    await session.write("again", b"x" * 1000)


async def a_reset_begins_anew(place: Place) -> None:
    session = await place.session(seed=5)
    draw = "import random; random.random()"
    first = (await session.run(draw)).output
    await session.run("x = 1; open('gone', 'w').write('g')")
    await session.reset()
    assert (await session.run("x")).status == "error"
    assert await session.list() == []
    await session.reset(5)
    assert (await session.run(draw)).output == first
    await session.reset(6)
    assert (await session.run(draw)).output != first


async def sessions_are_apart(place: Place) -> None:
    one, two = await asyncio.gather(place.session(seed=3), place.session(seed=3))
    ran = await asyncio.gather(
        one.run("x = 1; import random; random.random()"), two.run("import random; random.random()")
    )
    assert ran[0].output == ran[1].output != b""
    assert (await two.run("x")).status == "error"
    await one.write("mine", b"1")
    assert await two.list() == []
    one.kill()
    assert (await two.run("1 + 1")).output == b"2\n"


async def an_ended_session_says_so(place: Place) -> None:
    session = await place.session()
    waiting = asyncio.ensure_future(session.run("import time; time.sleep(4)"))
    await asyncio.sleep(0.1)
    threading.Thread(target=session.stream.kill).start()
    try:
        await asyncio.wait_for(waiting, 10)
    except SessionLost:
        pass
    else:
        raise AssertionError("a killed session answered")
    await place.backend.kill(session.stream)
    await place.backend.kill(session.stream)  # twice does nothing


async def what_is_no_frame_ends_a_session(place: Place) -> None:
    session = await place.session()
    other = await place.session()
    await session.stream.send(b"\xff" * 64)
    try:
        await asyncio.wait_for(session.stream.receive(1), 15)
    except (EOFError, OSError):
        pass
    else:
        raise AssertionError("the agent answered what was no frame")
    assert (await other.run("1 + 1")).output == b"2\n"


async def the_servers_secrets_stay_with_it(place: Place) -> None:
    if not place.promises.clean:
        return
    session = await place.session()
    os.environ[SECRET] = "do-not-tell"
    try:
        told = await session.run("import os; sorted(os.environ.items())")
    finally:
        del os.environ[SECRET]
    assert b"do-not-tell" not in told.output
    assert b"PYTHONHASHSEED" in told.output


async def there_is_no_network(place: Place) -> None:
    if not place.promises.no_network:
        return
    session = await place.session()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.3)
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 1)"
        assert (await session.run(code)).status == "error"
        try:
            listener.accept()
        except TimeoutError:
            return
        raise AssertionError("the code reached the server's machine")


ALL: tuple[Check, ...] = (
    cells_share_their_variables_and_show_what_a_notebook_shows,
    files_are_the_same_for_tools_and_code,
    values_come_back_as_they_were,
    code_past_its_time_is_stopped,
    what_heeds_no_interrupt_is_killed,
    processor_time_is_limited,
    code_that_ends_its_process_leaves_its_files,
    long_output_is_cut_in_the_middle,
    memory_is_limited,
    the_workspace_is_limited,
    a_reset_begins_anew,
    sessions_are_apart,
    an_ended_session_says_so,
    what_is_no_frame_ends_a_session,
    the_servers_secrets_stay_with_it,
    there_is_no_network,
)
CARRIED: tuple[Check, ...] = (
    cells_share_their_variables_and_show_what_a_notebook_shows,
    files_are_the_same_for_tools_and_code,
    an_ended_session_says_so,
)
"""What depends on how bytes are carried, and not on the agent."""


async def keeps_the_contract(
    backend: Backend, promises: Promises, checks: tuple[Check, ...] = ALL, *, again: bool = True
) -> None:
    """Start ``backend``, make each check in it, close it, and start it ``again``; raises with all that failed."""
    spec = SandboxSpec(LIMITS)
    facts = await backend.start(spec)
    assert facts["backend"] == backend.name
    assert facts["isolation"] == backend.level
    assert backend.level in LEVELS
    assert str(facts["python"]).startswith("3.")
    assert facts["packages"] == {}
    failed = []
    place = Place(backend, promises)
    try:
        for check in checks:
            try:
                async with asyncio.timeout(60):
                    await check(place)
            except Exception as error:
                at = traceback.extract_tb(error.__traceback__)[-1].line
                failed.append(f"{check.__name__}: {type(error).__name__}: {str(error) or at}")
            await place.end()
        left = await place.session()
        await backend.close()
        try:
            await left.run("1")
        except SessionLost:
            pass
        else:
            failed.append("a session outlived its back-end")
        if again:
            assert await backend.start(spec) == facts
            await place.session()
            backend.kill_now()
    finally:
        await backend.close()
    assert not failed, "\n".join(failed)
