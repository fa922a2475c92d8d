"""What sessions of the Python sandbox could share with others or hold unseen, and do not."""

from __future__ import annotations

import platform

import pytest
from sandbox_agents import INSIDE, LIMITS, run, shown

LANDLOCK = "landlock"
WHERE = pytest.mark.parametrize("backend", [INSIDE, LANDLOCK])
OVER = LIMITS.workspace_bytes + 2**23


def test_a_session_changes_nothing_of_the_devices_but_writes_to_them() -> None:
    code = """
import os
for name in ("null", "zero", "full", "random", "urandom"):
    try: os.utime(f"/dev/{name}"); print("changed", name)
    except OSError as error: print(error.strerror)
print(open("/dev/null", "wb", 0).write(b"x"))
"""
    assert shown(code, backend=INSIDE) == "Read-only file system\n" * 5 + "1\n"


def test_a_session_cannot_have_others_killed_in_its_place() -> None:
    code = """
print(open("/proc/self/oom_score_adj").read())
open("/proc/self/oom_score_adj", "w")
"""
    ended = run(code, backend=INSIDE)[0]
    assert ended.output.startswith(b"1000\n")
    assert b"Read-only file system" in ended.output


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the calls are made by their numbers")
@WHERE
def test_a_session_takes_nothing_that_the_machine_has_only_so_much_of(backend: str) -> None:
    code = """
import ctypes, os, resource
call = ctypes.CDLL(None, use_errno=True).syscall
context, timer, timers = ctypes.c_ulong(0), ctypes.c_void_p(), 0
print("asynchronous", call(206, 4096, ctypes.byref(context)), ctypes.get_errno())
print("pages of pipes", call(278, os.pipe()[1], None, 0, 0), ctypes.get_errno())
print("scheduling", ctypes.CDLL(None, use_errno=True).prctl(62, 1, 0, 0, 0))
print("dumpable", ctypes.CDLL(None, use_errno=True).prctl(4, 0, 0, 0, 0))
print("sync", os.sync())
while timers < 1000 and ctypes.CDLL(None).timer_create(1, None, ctypes.byref(timer)) == 0: timers += 1
print("timers", timers < 300, "core", resource.getrlimit(resource.RLIMIT_CORE))
"""
    assert shown(code, backend=backend).splitlines() == [
        "asynchronous -1 1",
        "pages of pipes -1 1",
        "scheduling -1",
        "dumpable -1",
        "sync None",
        "timers True core (1, 1)",
    ]


@WHERE
def test_nobody_sees_what_another_reads(backend: str) -> None:
    code = """
import os
folder = os.path.dirname(os.__file__)
names = [name for name in sorted(os.listdir(folder)) if name.endswith(".py")][:40]
def times(): return [os.stat(f"{folder}/{name}").st_atime_ns for name in names] + [os.stat(folder).st_atime_ns]
before = times()
for name in names: open(f"{folder}/{name}", "rb").read()
os.listdir(folder)
print(before == times())
"""
    assert shown(code, backend=backend) == "True\n"


SHARED = """
import ctypes, mmap, os, time
madvise = ctypes.CDLL(None).madvise
for _ in range(4):
    if os.fork() == 0:
        kept = []
        for _ in range(15):
            one = mmap.mmap(-1, 2**22)
            address = ctypes.addressof(ctypes.c_char.from_buffer(one))
            madvise(ctypes.c_void_p(address), ctypes.c_size_t(2**22), 4)
            kept.append(one)
        time.sleep(100)
time.sleep(100)
"""
SOCKETS = """
import os, socket, time
for _ in range(4):
    if os.fork() == 0:
        kept = [socket.socketpair() for _ in range(50)]
        time.sleep(100)
time.sleep(100)
"""
UNREADABLE = """
import os, shutil, sys, time
shutil.copy(sys.executable, "mine"); os.chmod("mine", 0o111)
code = "import mmap, time; kept = mmap.mmap(-1, 2**25); time.sleep(100)"
for _ in range(6):
    if os.fork() == 0: os.execve("mine", ["mine", "-S", "-c", code], {"PYTHONHOME": "/usr"})
time.sleep(100)
"""


@pytest.mark.parametrize("code", [SHARED, SOCKETS, UNREADABLE], ids=["shared", "sockets", "unreadable programs"])
def test_memory_that_no_process_shows_counts(code: str) -> None:
    ended = run(code, backend=INSIDE)[0]
    if b"File too large" in ended.output:
        pytest.skip("this interpreter is no small file")
    assert (ended.status, ended.why) == ("killed", "memory")


FILL = f"""
import os, time
kept, left = [], {OVER}
for number in range({OVER} >> 22):
    file = {{opened}}
    kept.append(file)
    file.write(bytes(2**22))
time.sleep(100)
"""


@pytest.mark.parametrize(
    ("before", "opened"),
    [
        ("os.chdir(os.environ['TMPDIR'])", "open(str(number), 'wb', 0)"),
        ("for _ in range(80): os.mkdir('d'); os.chdir('d')", "open(str(number), 'wb', 0)"),
        ("os.mkdir('x', 0o300); os.chdir('x')", "open(str(number), 'wb', 0)"),
        ("", "open(os.open('.', os.O_TMPFILE | os.O_RDWR), 'wb', 0)"),
    ],
    ids=["temporary", "deep", "unreadable", "without a name"],
)
def test_a_disk_under_landlock_is_watched_wherever_code_writes(before: str, opened: str) -> None:
    ended = run(f"import os\n{before}\n{FILL.format(opened=opened)}", "6 * 7", backend=LANDLOCK)
    assert (ended[0].status, ended[0].why) == ("killed", "disk")
    assert ended[1].output == b"42\n"


def test_calls_do_not_fill_a_disk_under_landlock_one_after_another() -> None:
    code = """
import os, time
for number in range(24): open(f"{time.monotonic()}", "wb").write(bytes(2**23))
"""
    ended = run(*[code] * 5, "import os\nprint(sum(os.stat(name).st_size for name in os.listdir()))", backend=LANDLOCK)
    assert int(ended[-1].output) < 16 * LIMITS.workspace_bytes


def test_threads_that_a_session_may_have_do_not_use_up_its_addresses() -> None:
    code = """
import threading
go = threading.Event()
for _ in range(12): threading.Thread(target=go.wait).start()
size = next(line for line in open("/proc/self/status") if line.startswith("VmSize"))
go.set()
print(int(size.split()[1]) < 500_000)
"""
    assert shown(code, backend=INSIDE) == "True\n"
