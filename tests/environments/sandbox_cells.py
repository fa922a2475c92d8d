"""A closed place for dangerous tests: process and mount name spaces of its own, a limit of memory, any user id.

``run_cell`` starts a Python file in there. When it ends, is killed or takes too long, the kernel ends everything that
it began. All of the machine's files are read-only in it, but for one temporary folder that lies in memory: a boundary
that is still being written, or that is broken, costs no files. As root a cell may run as another user, for whom the
interpreter's and the project's folders are made readable wherever they lie. Run as a program it is the first process
of the cell: it mounts, starts the file, reaps and reports.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534
LIMIT = 5 * 2**30
"""Bytes of memory for all processes of a cell together."""
CELLS = [(backend, user) for backend in ("namespaces", "landlock") for user in (0, NOBODY)]
"""Every tier that holds hostile code on a shared kernel, for a server that is root and for one that is nobody."""


def user_namespaces() -> str | None:
    """Why the processes of a cell cannot have name spaces of their own here; None when they can."""
    if sys.platform != "linux":
        return "name spaces are of Linux"
    command = ["unshare", *name_spaces(), "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unshare: {error}"
    return done.stderr.strip() or "unshare failed" if done.returncode else None


def name_spaces() -> list[str]:
    """The options of unshare for a cell."""
    own = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return [*own, "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--propagation", "private"]


cannot = cache(user_namespaces)


def usable(user: int) -> None:
    """Skip a test whose cell cannot be had here, and say why."""
    import pytest

    if why := cannot():
        pytest.skip(f"no process name space for dangerous code: {why}")
    if user == 0 and os.geteuid() != 0:
        pytest.skip("these tests do not run as root")


def memory_group() -> Path | None:
    """A new control group that bounds memory, where we may make one: of version 1, or of 2 where that is delegated."""
    try:
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in groups:
        _, kinds, path = line.split(":", 2)
        for base, file in (
            (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
            (Path("/sys/fs/cgroup"), "memory.max"),
        ):
            if (kinds == "memory") != (base.name == "memory") or kinds not in ("memory", ""):
                continue
            group = base / path.lstrip("/") / f"mcpgym-tests-{os.getpid()}-{time.monotonic_ns()}"
            try:
                group.mkdir()
            except OSError:
                continue
            try:
                (group / file).write_text(str(LIMIT))
                return group
            except OSError:
                group.rmdir()
    return None


@contextlib.contextmanager
def bounded() -> Iterator[list[str]]:
    """The words before a command that hold all it starts to ``LIMIT`` bytes of memory (each, where groups are not)."""
    group = memory_group()
    if group is None:
        yield ["prlimit", f"--as={LIMIT}"]
        return
    try:
        yield ["sh", "-c", f'echo $$ > "{group}/cgroup.procs" && exec "$@"', "sh"]
    finally:
        deadline = time.monotonic() + 10
        while True:
            try:
                group.rmdir()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)


def run_cell(
    program: Path, *arguments: str, user: int = 0, seconds: float = 100, environment: Mapping[str, str] = {}
) -> subprocess.CompletedProcess[str]:
    """Run a Python file with ``arguments`` in a cell, as ``user``.

    Args:
        program: the file.
        arguments: its arguments.
        user: the user id, if we are root; otherwise it stays ours.
        seconds: after which everything is killed.
        environment: further environment variables.

    Raises:
        subprocess.TimeoutExpired: it took longer.
    """
    with tempfile.TemporaryDirectory(prefix="mcpgym-cell-") as folder, bounded() as limit:
        Path(folder).chmod(0o755)
        job = json.dumps([folder, user, [sys.executable, str(program), *arguments]])
        command = [*limit, "unshare", *name_spaces(), sys.executable, "-I", "-S", __file__, job]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "TMPDIR": folder, "HOME": folder, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as started:
            try:
                out, err = started.communicate(timeout=seconds)
            finally:
                started.kill()  # unshare's child dies with it, and with that everything in its process name space
        return subprocess.CompletedProcess(command, started.returncode, out, err)


def mount(*words: str) -> None:
    """Mount, or say why not."""
    subprocess.run(["mount", *words], check=True, stdin=subprocess.DEVNULL)


def closed_above(path: Path) -> Path | None:
    """The first folder on the way to ``path`` that another user may not pass."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & 0o001:
            return folder
    return None


def show_to_everybody(folder: Path) -> None:
    """Make interpreter and project readable for any user, in this mount name space only."""
    needed = sorted({Path(name).resolve() for name in (sys.base_prefix, sys.prefix, ROOT)})
    closed = {path: above for path in needed if (above := closed_above(path))}
    stage = folder / "stage"
    stage.mkdir()
    for number, path in enumerate(closed):
        (stage / str(number)).mkdir()
        mount("--bind", str(path), str(stage / str(number)))
    for above in sorted(set(closed.values())):
        mount("-t", "tmpfs", "-o", "mode=0755", "above", str(above))
    for number, path in enumerate(closed):
        path.mkdir(parents=True, exist_ok=True)
        mount("--bind", str(stage / str(number)), str(path))
        subprocess.run(["umount", str(stage / str(number))], check=True)
    shutil.rmtree(stage)


def plant(folder: Path) -> str:
    """Cover a file of an installed package by a secret, in this mount name space only; its path."""
    found = subprocess.run(
        [sys.prefix + "/bin/python", "-c", "import sandbox_decoys\nprint(sandbox_decoys.planted() or '')"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    if found:
        secret = folder / "planted"
        secret.write_text(f"# SECRET-{os.urandom(12).hex()}\n")
        secret.chmod(0o644)
        mount("--bind", str(secret), found)
    return found


def protect(folder: Path) -> None:
    """Make every file system read-only in this mount name space, but for ``folder`` and what is made anew here.

    Raises:
        RuntimeError: something of the machine's can still be written to.
    """
    mount("-t", "tmpfs", "-o", "mode=1777,size=3g", "shm", "/dev/shm")
    spared = (str(folder), "/proc", "/dev/shm", "/dev/pts", "/dev/mqueue")
    places = [line.split()[4].replace("\\040", " ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for place in dict.fromkeys(places):
        if not place.startswith(spared):
            subprocess.run(["mount", "-o", "remount,bind,ro", place], stdin=subprocess.DEVNULL, capture_output=True)
    for place in {Path("/"), Path("/tmp"), Path("/var/tmp"), Path.cwd(), ROOT, Path(sys.prefix), folder.parent}:
        probe = place / f".mcpgym-cell-{os.getpid()}"
        try:
            probe.touch()
        except OSError:
            continue
        probe.unlink()
        raise RuntimeError(f"{place} can be written to in a cell for dangerous code; nothing is run there")


def first_process(job: str) -> int:
    """What the cell's first process does: it mounts, starts the program, waits for it and reaps whoever is left."""
    name, user, command = json.loads(job)
    folder = Path(name)
    environment = dict(os.environ)
    more: dict[str, int | list[int]] = {}
    sys.prefix = str(Path(command[0]).parent.parent)  # without site, it is the interpreter's own
    mount("-t", "tmpfs", "-o", "mode=1777,size=3g", "cell", name)
    if os.geteuid() == 0:
        if user:
            show_to_everybody(folder)
            more = {"user": user, "group": user, "extra_groups": []}
        environment["MCPGYM_TEST_PLANTED"] = plant(folder)
    protect(folder)
    started = subprocess.Popen(command, env=environment, **more)  # type: ignore[call-overload]
    while True:
        pid, status = os.wait()
        if pid == started.pid:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    raise SystemExit(first_process(sys.argv[1]) & 0xFF)
