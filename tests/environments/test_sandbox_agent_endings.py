"""How a call ends: the status and the reason come from init, and what the session keeps is as the status says."""

from __future__ import annotations

import asyncio
import re

import pytest
from sandbox_agents import INSIDE, LIMITS, OUTSIDE, run, with_session

from mcpgym_environments.python_sandbox.jail.frames import MOST_WHY
from mcpgym_environments.python_sandbox.sessions.session import Outcome, Session

LOOP = "kept = 5\nwhile True: pass"
DEAF = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('before')\nwhile True: time.sleep(1)"


def ending(code: str, seconds: float | None = None) -> Outcome:
    """How a cell ends in namespaces; whatever it does, the next one works, and files are kept."""

    async def act(session: Session) -> tuple[Outcome, Outcome, bytes]:
        await session.write("kept.txt", b"kept")
        await session.run("variable = 1")
        ended = await session.run(code, seconds)
        return ended, await session.run("variable"), await session.read("kept.txt")

    ended, after, kept = with_session(act, INSIDE)
    assert kept == b"kept"
    assert after.status == ("error" if ended.fresh else "ok"), after.output.decode()
    assert after.output.endswith(b"NameError: name 'variable' is not defined\n" if ended.fresh else b"1\n")
    return ended


def facts(outcome: Outcome) -> tuple[str, str | None, bool]:
    """Its status, its reason, and whether the variables are lost."""
    return outcome.status, outcome.why, outcome.fresh


def test_code_that_takes_too_long_is_interrupted_and_loses_nothing() -> None:
    ended = ending(LOOP, 0.2)
    assert facts(ended) == ("timeout", "timeout", False)
    assert ended.output.endswith(b"line 2\n    while True: pass\nKeyboardInterrupt\n"), ended.output
    assert 190 <= ended.milliseconds < 15_000


@pytest.mark.parametrize(
    "code",
    [
        "try:\n    while True: pass\nexcept KeyboardInterrupt: print('caught')",
        "import time\ntime.sleep(100)",
        "import os\nif os.fork(): os.wait()\nelse: __import__('time').sleep(100)",
        "import asyncio\nawait asyncio.sleep(100)",
        "import threading\nthreading.Event().wait()",
        "sum(1 for _ in iter(int, 1))",
    ],
    ids=lambda code: code.splitlines()[-1][:30],
)
def test_whatever_it_waits_for(code: str) -> None:
    assert facts(ending(code, 0.15)) == ("timeout", "timeout", False)


def test_code_that_ignores_the_interrupt_is_killed() -> None:
    ended = ending(DEAF, 0.1)
    assert facts(ended) == ("killed", "timeout", True)
    assert ended.output == b"before\n"
    assert 590 <= ended.milliseconds < 15_000


def test_processor_time_counts_over_all_processes() -> None:
    async def act(session: Session) -> Outcome:
        code = "import os\nfor _ in range(2):\n    if not os.fork():\n        while True: pass\nwhile True: pass"
        return await session.run(code, cpu_seconds=0.4)

    ended = with_session(act, INSIDE)
    assert facts(ended) == ("timeout", "cpu", False)


def test_processor_time_of_children_that_nobody_waits_for_counts_too() -> None:
    code = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets them, and their time with them
while True:
    if not os.fork():
        while time.process_time() < 0.35: pass
        os._exit(0)
    time.sleep(0.4)
"""

    async def act(session: Session) -> Outcome:
        return await session.run(code, cpu_seconds=0.5)

    assert facts(with_session(act, INSIDE)) == ("timeout", "cpu", False)


@pytest.mark.parametrize("kept", [True, False], ids=["with names", "without"])
def test_a_disk_that_nothing_limits_is_watched(kept: bool) -> None:
    size = LIMITS.workspace_bytes // 2
    code = f"""
import os, time
files = []
for name in "abc":
    file = open(name, "wb")
    if not {kept}: os.unlink(name)
    file.write(bytes({size})); file.flush(); files.append(file)
time.sleep(100)
"""

    async def act(session: Session) -> tuple[Outcome, bytes, Outcome]:
        await session.write("kept.txt", b"kept")
        ended = await session.run(code)
        return ended, await session.read("kept.txt"), await session.run("import os\nsorted(os.listdir())")

    ended, file, after = with_session(act, OUTSIDE)
    assert facts(ended) == ("killed", "disk", True)
    assert file == b"kept"
    assert after.output == (b"['a', 'b', 'c', 'kept.txt']\n" if kept else b"['kept.txt']\n")


def test_memory_counts_over_all_processes_and_nothing_is_left_of_it() -> None:
    code = f"""
import os, time
for _ in range(4):
    if not os.fork():
        held = b"x" * {LIMITS.memory // 3}
        time.sleep(100)
time.sleep(100)
"""
    assert facts(ending(code)) == ("killed", "memory", True)


def test_one_process_gets_an_error_when_it_asks_for_too_much() -> None:
    ended = ending(f"x = bytearray({LIMITS.address_space})")
    assert facts(ended) == ("error", None, False)
    assert ended.output.endswith(b"MemoryError\n")


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import os\nprint('a', end='')\nos._exit(0)", "exit 0"),
        ("import os\nos._exit(300)", "exit 44"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "signal SIGKILL"),
        ("import os, signal\nos.abort()", "signal SIGABRT"),
        ("import ctypes\nctypes.string_at(0)", "signal SIGSEGV"),
        ("import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'import sys; sys.exit(9)'])", "exit 9"),
        ("import os\nos.kill(os.getpid(), 37)", "signal 37"),
    ],
    ids=lambda text: text.splitlines()[-1][:30],
)
def test_a_worker_that_ends_says_how_and_is_replaced(code: str, why: str) -> None:
    ended = ending(code)
    assert facts(ended) == ("crashed", why, True)
    assert ended.output in (b"", b"Fatal Python error: Aborted\n") or b"Segmentation fault" in ended.output


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("raise SystemExit", "ok"),
        ("import sys\nsys.exit(0)", "ok"),
        ("exit()", "ok"),
        ("raise SystemExit(2)", "error"),
        ("raise SystemExit('no')", "error"),
        ("raise KeyboardInterrupt", "error"),
        ("raise GeneratorExit", "error"),
    ],
)
def test_an_exit_ends_the_cell_and_not_the_session(code: str, status: str) -> None:
    assert facts(ending(code)) == (status, None, False)


def test_a_stopped_worker_is_woken_and_ends_at_its_limit() -> None:
    assert ending("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", 0.2).status in ("timeout", "killed", "ok")


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("import os\npid = os.fork()\nprint('child' if not pid else 'parent')", {b"child\n", b"parent\n"}),
        ("import os\nif not os.fork():\n    1 / 0\nos.wait();", {b"ZeroDivisionError: division by zero\n"}),
        ("import os, sys\nif not os.fork():\n    sys.exit(3)\nos.waitstatus_to_exitcode(os.wait()[1])", {b"3\n"}),
    ],
    ids=["both go on", "an error", "an exit"],
)
def test_a_forked_child_that_returns_is_no_second_worker(code: str, output: set[bytes]) -> None:
    ended = ending(code)
    assert facts(ended) == ("ok", None, False)
    for line in output - {b"child\n"}:
        assert line in ended.output


LIVING = """
import os
def alive(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] not in "ZX"
sorted(int(name) for name in os.listdir("/proc") if name.isdigit() and alive(name)), os.getpid()
"""


def test_nothing_runs_between_two_calls() -> None:
    begin = """
import os, subprocess, threading, time
def count(path):
    while True:
        with open(path, "a") as file: file.write("x")
        time.sleep(0.002)
threading.Thread(target=count, args=("thread",), daemon=True).start()
if not os.fork():
    os.setsid()
    if not os.fork():
        count("process")
time.sleep(0.05)
"""

    async def act(session: Session) -> tuple[bytes, bytes, bytes]:
        await session.run(begin)
        first = await session.read("thread") + await session.read("process")
        await asyncio.sleep(0.1)
        second = await session.read("thread") + await session.read("process")
        found = await session.run(LIVING)
        return first, second, found.output

    first, second, left = with_session(act, INSIDE)
    assert first == second
    assert len(first) > 2
    assert re.fullmatch(rb"\(\[1, (\d+)\], \1\)\n", left), left


def test_output_is_kept_from_both_ends_and_the_rest_is_counted() -> None:
    ended = ending("print('a' * 5000, end='')\nfor _ in range(1000): print('b' * 999)\nprint('c' * 5000, end='')")
    assert ended.status == "ok"
    assert ended.output == b"a" * (LIMITS.output_bytes // 2) + b"c" * (LIMITS.output_bytes // 2)
    assert ended.omitted == 5000 + 1_000_000 + 5000 - LIMITS.output_bytes
    small = ending(f"print('x' * {LIMITS.output_bytes - 1})")
    assert (len(small.output), small.omitted) == (LIMITS.output_bytes, 0)
    assert ending(f"'y' * {10**7}").omitted == 10**7 + 3 - LIMITS.output_bytes


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ("def __str__(self): 1 / 0", "E: <exception str() failed>\n"),
        ("def __str__(self): raise SystemExit", "E: <exception str() failed>\n"),
        ("def __str__(self): return 5", "E: <exception str() failed>\n"),
        ("def __str__(self): return 'a\\nb'", "E: a\nb\n"),
        ("def __repr__(self): 1 / 0", "E\n"),
        ("def __getattribute__(self, name): raise SystemExit", "E\n"),
        ("__cause__ = property(lambda self: self)\n    __context__ = __cause__", "E\n"),
        ("__traceback__ = 5", "E\n"),
        ("__module__ = 5", "E\n"),
        ("def __del__(self): 1 / 0", "E\n"),
        ("__notes__ = 7", "E\n"),
        ("__notes__ = ['\\ud800', 5]", "E\n\\ud800\n"),
    ],
    ids=lambda text: text.splitlines()[0][:30],
)
def test_exceptions_that_do_not_want_to_be_shown(definition: str, text: str) -> None:
    ended = ending(f"class E(Exception):\n    {definition}\nraise E")
    assert facts(ended) == ("error", None, False)
    lines = ended.output.decode().splitlines(keepends=True)
    raised = 2 + len(definition.splitlines())
    assert lines[:3] == ["Traceback (most recent call last):\n", f'  File "<cell 2>", line {raised}\n', "    raise E\n"]
    assert "".join(lines[3:]).startswith(text)


@pytest.mark.parametrize(
    "code",
    [
        "class E(Exception):\n    def __str__(self):\n        while True: pass\nraise E",
        "class R:\n    def __repr__(self):\n        while True: pass\nR()",
    ],
    ids=["error", "repr"],
)
def test_what_never_ends_to_be_shown_is_interrupted(code: str) -> None:
    assert facts(ending(code, 0.15)) == ("timeout", "timeout", False)


def test_a_chain_of_a_million_and_one_of_itself_are_shown_in_short() -> None:
    long = "e = None\nfor n in range(100000):\n    new = ValueError(n)\n    new.__context__, e = e, new\nraise e"
    assert ending(long).output.count(b"ValueError: ") == 8
    circle = "a, b = ValueError('a'), ValueError('b')\na.__context__, b.__context__ = b, a\nraise a"
    assert ending(circle).output.count(b"ValueError: ") == 2


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.write(3, b'x' * 100)",
        "import os\nos.close(3)",
        "import os\nos.closerange(3, 100)",
        "import os, time\nos.close(3)\ntime.sleep(0.05)\nos._exit(5)",
        "import os, struct\nos.write(3, struct.pack('>BIII', 0, 10**6, 0, 0))",
        "import os, struct\nos.write(3, struct.pack('>BIII', 0, 2, 2**31, 0))",
    ],
    ids=["bytes", "closed", "all closed", "closed and gone on", "a call to come", "too long"],
)
def test_code_that_writes_to_the_channel_ends_its_worker_only(code: str) -> None:
    ended = ending(code)
    assert ended.status == "crashed"
    assert ended.fresh


def test_an_answer_that_code_forges_ends_its_own_call_and_no_other() -> None:
    forged = "import os, struct, time\nos.write(3, struct.pack('>BIII', 0, {call}, 0, 0))\ntime.sleep(0.2)\n1 / 0"
    first, second = run(forged.format(call=1), "'second'", backend=INSIDE)
    assert first.status == "ok"
    assert second.status == "ok"  # what the first cell goes on to print is its own fault
    assert second.output.endswith(b"'second'\n")


def test_a_reason_that_code_forges_is_cut_to_what_an_answer_may_hold() -> None:
    forged = (
        "import os, struct\ntext = b'\\xff' * 500\n"
        "os.write(3, struct.pack('>BIII', 1, 1, len(text), 0) + text)\nwhile True: pass"
    )
    (outcome,) = run(forged, backend=INSIDE)
    assert outcome.status == "error"
    assert outcome.why == ("\\xff" * 500)[:MOST_WHY]


def test_calls_are_numbered_and_cells_too() -> None:
    outcomes = run("1 / 0", "1", "1 / 0", backend=INSIDE)
    assert [b'"<cell %d>"' % number in outcomes[number - 1].output for number in (1, 3)] == [True, True]
    assert all(outcome.omitted == 0 for outcome in outcomes)
