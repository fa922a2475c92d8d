"""Without a boundary, code that goes wrong still does no harm: it is not root, and writes in its own folder only."""

from __future__ import annotations

import ast
import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mcpgym_environments.python_sandbox.backends import unsafe_local
from mcpgym_environments.python_sandbox.backends.unsafe_local import UnsafeLocal
from mcpgym_environments.python_sandbox.jail.refusal import Refused
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, Unavailable
from mcpgym_environments.python_sandbox.sessions.pool import Pool
from mcpgym_environments.python_sandbox.sessions.session import Outcome

pytestmark = pytest.mark.skipif(os.name != "posix", reason="unsafe-local forks")
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="this is about a server of root's")


def landlock() -> int:
    """Which version of Landlock there is here; 0 for none."""
    if sys.platform != "linux":
        return 0
    from mcpgym_environments.python_sandbox.jail import landlock as module

    try:
        return module.version()
    except OSError:
        return 0


async def ran(backend: UnsafeLocal, *cells: str) -> list[Outcome]:
    """How some cells end in a session of this back-end."""
    pool = Pool(backend, SandboxSpec(), ready=0)
    try:
        session = await pool.open()
        return [await session.run(cell) for cell in cells]
    finally:
        await pool.close()


def harm(path: Path) -> str:
    """Code that tries to change a file of ours, one that lies nowhere but in a folder of this test."""
    return f"""
import os
failed = []
for act in (
    lambda: open({str(path)!r}, "w"),
    lambda: os.truncate({str(path)!r}, 0),
    lambda: os.unlink({str(path)!r}),
    lambda: os.rename({str(path)!r}, {str(path)!r} + ".moved"),
    lambda: os.rename({str(path)!r}, "stolen"),
    lambda: os.link({str(path)!r}, "linked"),
    lambda: open({str(path.parent / "new")!r}, "w"),
    lambda: os.mkdir({str(path.parent / "new")!r}),
    lambda: os.symlink("x", {str(path.parent / "new")!r}),
    lambda: open("../outside", "w"),
):
    try: act()
    except OSError as error: failed.append(type(error).__name__)
failed
"""


@pytest.mark.parametrize("open_to_all", [False, True], ids=["of ours", "that all may write to"])
def test_what_is_not_the_sessions_own_cannot_be_written_or_removed(open_to_all: bool, tmp_path: Path) -> None:
    if not landlock() and (open_to_all or os.geteuid() != 0):
        pytest.skip("this kernel has no Landlock")
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / "file"
    file.write_text("as it was")
    if open_to_all:
        folder.chmod(0o777)
        file.chmod(0o666)
    harmed, own = asyncio.run(ran(UnsafeLocal(), harm(file), "open('own', 'w').write('x'), open('own').read()"))
    assert harmed.output.decode().count("Error") == 10, harmed.output.decode()
    assert file.read_text() == "as it was"
    assert list(folder.iterdir()) == [file]
    assert own.output == b"(1, 'x')\n"


@as_root
def test_roots_sessions_are_users_of_their_own_without_privileges(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    code = """
import os, subprocess, sys
ids = os.getresuid() + os.getresgid()
child = subprocess.run([sys.executable, "-c", "import os; print(os.getuid())"], capture_output=True, text=True).stdout
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
failed = []
for act in (os.setuid, os.setgid, lambda n: os.kill(PID, n), lambda n: os.setgroups([n]), lambda n: os.chroot("/"),
            lambda n: os.chown(".", n, n), lambda n: os.nice(-1)):
    try: act(0)
    except OSError: failed.append(1)
rights = [status[name].strip() for name in ("NoNewPrivs", "CapEff")]
len(set(ids)), ids[0] >= 32768, int(child) == ids[0], os.getgroups(), *rights, len(failed)
""".replace("PID", str(os.getpid()))
    first, other = (asyncio.run(ran(UnsafeLocal(), code, "ids[0]")) for _ in range(2))
    facts = ast.literal_eval(first[0].output.decode())
    assert facts[:5] == (1, True, True, [], "1")
    assert int(facts[5], 16) in (0, 1 << 2)  # nothing, or to read what root can, where the interpreter is root's own
    assert facts[6] == 7
    assert first[1].output != other[1].output


@as_root
def test_root_that_cannot_be_anybody_else_is_refused_unless_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise Refused("the server is root, but may not become another user", "")

    monkeypatch.setattr(unsafe_local.users, "throw_away", refuse)
    with pytest.raises(Unavailable) as caught:
        asyncio.run(UnsafeLocal().start(SandboxSpec()))
    assert "unsafe-local does not run code as root: the server is root, but may not become" in caught.value.reason
    assert "MCPGYM_SANDBOX_AS_ROOT=yes" in caught.value.remedy
    monkeypatch.setenv("MCPGYM_SANDBOX_AS_ROOT", "yes")
    assert asyncio.run(ran(UnsafeLocal(), "import os\nos.getuid()"))[0].output == b"0\n"


def test_a_server_that_is_killed_leaves_no_process_and_no_folder(tmp_path: Path) -> None:
    program = f"""
import asyncio
from pathlib import Path
from mcpgym_environments.python_sandbox.backends.unsafe_local import UnsafeLocal
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec
from mcpgym_environments.python_sandbox.jail import frames
async def main():
    backend, spec = UnsafeLocal(), SandboxSpec()
    await backend.start(spec)
    stream = await backend.open(spec)
    for header, code in (({{"op": "hello", "n": 0, "spec": spec.as_json()}}, b""), ({{"op": "run", "n": 1}}, CODE)):
        await stream.send(frames.encode(header, code))
        if header["op"] == "hello":
            await stream.receive(sum(frames.lengths(await stream.receive(8))))
    while not list(Path({str(tmp_path)!r}).glob("*/work/begun")):
        await asyncio.sleep(0.01)
    print("begun", flush=True)
    await asyncio.sleep(100)
CODE = b"open('begun', 'w').close()\\nimport os\\nos.fork()\\nwhile True: pass"
asyncio.run(main())
"""
    tmp_path.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "begun\n"
        server.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 15
    while (left := list(tmp_path.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == []
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(tmp_path) not in listed
