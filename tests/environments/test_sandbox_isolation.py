"""The two tiers of this machine, from outside: what sessions are made of, what refuses them, what is left of them."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import psutil
import pytest
import sandbox_forking
from sandbox_forking import BACKENDS, SPEC, call, opened, run

from mcpgym_environments.python_sandbox.jail import namespaces, users
from mcpgym_environments.python_sandbox.jail.refusal import Refused
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec, Unavailable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="both tiers are of Linux")

PROBE = """
import json, os, socket, sys
def attempt(act):
    try: return repr(act())
    except OSError as error: return error.errno
def lines(path):
    try: return open(path).read().splitlines()
    except OSError as error: return error.errno
site = next(folder for folder in sys.path if folder.endswith('site-packages'))
print(json.dumps({
    'uid': os.getuid(), 'groups': os.getgroups(), 'cwd': os.getcwd(), 'environment': dict(os.environ),
    'status': lines('/proc/self/status'), 'mounts': lines('/proc/self/mountinfo'),
    'root': attempt(lambda: os.listdir('/')),
    'processes': attempt(lambda: [name for name in os.listdir('/proc') if name.isdigit()]),
    'site': sorted(os.listdir(site)), 'host': socket.gethostname(), 'passwd': lines('/etc/passwd'),
    'links': {n: attempt(lambda: os.readlink('/proc/self/ns/' + n)) for n in
        ('user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup')},
    'adjustment': lines('/proc/self/oom_score_adj'),
    'writes': {p: attempt(lambda: os.open(p, os.O_CREAT | os.O_WRONLY)) for p in
        ('/x', '/etc/x', '/usr/x', '/dev/x', os.path.join(site, 'x'), os.__file__)},
    'init': {n: attempt(lambda: open('/proc/1/' + n, 'rb').read(1)) for n in ('mem', 'environ', 'maps')},
    'fork': attempt(lambda: os.fork() or os._exit(0)), 'secret': sorted(m for m in sys.modules if 'mcpgym' in m),
}))
"""
"""Looks around, changes nothing."""


@dataclass
class Seen:
    """What was seen of one tier."""

    tier: str
    facts: dict[str, Any]
    inside: list[dict[str, Any]] = field(default_factory=list)
    outside: list[dict[str, str]] = field(default_factory=list)
    left: dict[str, Any] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


def skip(error: Unavailable) -> NoReturn:
    """Skip what this machine refuses; a fault of ours, for which there is no remedy, is a failure."""
    if not error.remedy:
        raise error
    pytest.skip(f"{error.reason}: {error.remedy}")


def status(process: int) -> dict[str, str]:
    pairs = (line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return {name: value.strip() for name, value in pairs}


def held() -> dict[str, Any]:
    """What a process of ours could leave behind."""
    return {
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "mounts": len(Path("/proc/self/mountinfo").read_text().splitlines()),
        "children": len(psutil.Process().children(recursive=True)),
    }


async def look(tier: str) -> Seen:
    await asyncio.to_thread(os.getpid)  # the thread pool's own descriptors and threads come first
    before = held()
    backend = BACKENDS[tier]()
    seen = Seen(tier, dict(await backend.start(SPEC)))
    streams = await asyncio.gather(*(opened(backend) for _ in range(12)))
    for stream in streams[:2]:
        header, output = await run(stream, PROBE)
        assert header["status"] == "ok", output
        seen.inside.append(json.loads(output))
        assert stream.process
        seen.outside.append(status(stream.process))
    inits = [stream.process for stream in streams]
    for stream in streams:
        await backend.kill(stream)
    seen.left["sessions"] = await gone(lambda: [init for init in inits if init and alive(init)])
    for _ in range(8):
        start = time.perf_counter()
        stream = await opened(backend)
        seen.seconds.append(time.perf_counter() - start)
        stream.kill()
        stream.kill()
    await backend.close()
    await gone(lambda: [name for name, count in held().items() if count > before[name]])
    seen.left |= {name: count - before[name] for name, count in held().items()}
    return seen


def alive(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def gone(left: Any) -> list[Any]:
    """What is still there after a while; nothing, if all is well. (One second on an idle machine.)"""
    deadline = time.monotonic() + 20
    while (found := left()) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    return list(found)


@pytest.fixture(scope="module", params=list(BACKENDS))
def seen(request: pytest.FixtureRequest) -> Iterator[Seen]:
    try:
        yield asyncio.run(look(request.param))
    except Unavailable as error:
        skip(error)


def test_the_facts_say_what_keeps_code_in(seen: Seen) -> None:
    assert seen.facts == {
        "backend": seen.tier,
        "isolation": seen.tier,
        "python": platform.python_version(),
        "packages": {},
    }


def test_a_session_has_no_privileges(seen: Seen) -> None:
    for one in seen.outside:
        assert {one[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
        assert one["NoNewPrivs"] == "1"
        assert one["Seccomp"] == "2"
        if seen.tier == "namespaces" or os.getuid() == 0:
            assert one["CapBnd"] == "0" * 16
    if os.getuid() == 0:  # users of nobody, another one each
        owners = [set(one["Uid"].split()) | set(one["Gid"].split()) for one in seen.outside]
        assert all(len(owner) == 1 and int(next(iter(owner))) >= 32_768 for owner in owners)
        assert owners[0] != owners[1]
        assert {one["Groups"] for one in seen.outside} == {""}


def test_a_session_sees_no_files_but_its_own_and_pythons(seen: Seen) -> None:
    for inside in seen.inside:
        assert inside["site"] == []  # no package was asked for, whatever this environment has installed
        assert set(inside["writes"].values()) <= {errno.EROFS, errno.EACCES, errno.ENOENT}
        assert inside["environment"]["HOME"] == inside["cwd"]
        assert set(inside["environment"]) <= ALLOWED_VARIABLES
        assert not any(isinstance(found, str) for found in inside["init"].values())
        assert inside["secret"] == []


ALLOWED_VARIABLES = {
    "PATH", "LANG", "LC_ALL", "TZ", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "MPLBACKEND", "MALLOC_ARENA_MAX",
    "HOME", "TMPDIR", "PWD",
}  # fmt: skip


def test_namespaces_are_the_sessions_own(seen: Seen) -> None:
    first, second = seen.inside
    if seen.tier == "landlock":
        assert {found["root"] for found in seen.inside} == {errno.EACCES}
        assert {found["processes"] for found in seen.inside} == {errno.EACCES}
        assert first["passwd"] == errno.EACCES
        assert first["fork"] == errno.EPERM
        assert first["cwd"] != second["cwd"]
        return
    ours = {name: str(Path(f"/proc/self/ns/{name}").readlink()) for name in first["links"]}
    for name, link in ours.items():
        assert len({link, first["links"][name].strip("'"), second["links"][name].strip("'")}) == 3, name
    for inside in seen.inside:
        assert inside["uid"] == 1000
        assert inside["host"] == "sandbox"
        assert inside["processes"] == "['1', '2']"
        assert inside["adjustment"] == ["1000"]
        points = {mount.split()[4]: mount for mount in inside["mounts"]}
        assert set(points) == {"/", "/proc", "/work", "/tmp", "/dev/shm", *DEVICES}
        assert points["/"].split()[5].startswith("ro,nosuid,nodev")
        assert " - tmpfs tmpfs ro," in points["/"]  # the file system itself, not only this mount of it
        assert f"size={SPEC.limits.workspace_bytes // 1024}k,nr_inodes={SPEC.limits.workspace_files}" in points["/work"]


DEVICES = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")}


def test_nothing_is_left(seen: Seen) -> None:
    assert seen.left == {"sessions": [], "descriptors": 0, "mounts": 0, "children": 0}


def test_sessions_open_fast(seen: Seen) -> None:
    assert min(seen.seconds) < 0.2  # 13 ms on two idle cores; CI's are busy


@pytest.mark.parametrize("tier", list(BACKENDS))
def test_sigkill_of_the_server_ends_everything(tier: str, tmp_path: Path) -> None:
    command = [sys.executable, sandbox_forking.__file__, tier, "6"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        if server.stdout.readline() != "ready\n":
            told = json.loads(server.stdout.readline() or "{}")
            assert told.get("remedy"), server.stderr.read()
            pytest.skip(str(told))
        children = psutil.Process(server.pid).children()
        processes = [one for child in children for one in child.children(recursive=True)]
        assert len(processes) >= 1 + 6 * 2
        server.kill()
        left = asyncio.run(gone(lambda: [one for one in processes if alive(one.pid)]))
    assert left == []
    for child in children:  # what started the fork server removes its folder, and ends
        child.wait(20)
    assert list(tmp_path.iterdir()) == []


UNSHARE = {"x86_64": 272, "aarch64": 97}
LANDLOCK = 444


def refusal(tier: str, *calls: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, sandbox_forking.__file__, tier, "0", *calls], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_containers_profile_is_recognised() -> None:
    """As Docker's default profile does: no namespaces, and in old ones no Landlock either."""
    unshare = f"{UNSHARE[platform.machine()]}={errno.EPERM}"
    told = refusal("namespaces", unshare)
    assert "make namespaces (Operation not permitted): most likely a container's seccomp profile" in told["reason"]
    assert "--security-opt seccomp=unconfined" in told["remedy"]
    told = refusal("landlock", f"{LANDLOCK}={errno.EPERM}")
    assert told["reason"] == "a container's seccomp profile forbids Landlock (Operation not permitted)"
    told = refusal("landlock", f"{LANDLOCK}={errno.ENOSYS}")
    assert "has no Landlock" in told["reason"]
    assert "5.13" in told["remedy"]


def test_landlock_needs_no_namespaces() -> None:
    told = refusal("landlock", f"{UNSHARE[platform.machine()]}={errno.EPERM}")
    if "facts" not in told:
        skip(Unavailable(told["reason"], told["remedy"]))
    assert told["facts"]["isolation"] == "landlock"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can try what root of a container may do")
def test_root_of_a_container_that_allows_namespaces_has_them() -> None:
    told = refusal("namespaces", "docker")
    if "facts" not in told:
        skip(Unavailable(told["reason"], told["remedy"]))
    assert told["facts"]["isolation"] == "namespaces"


@pytest.mark.parametrize(
    ("why", "settings", "reason", "remedy"),
    [
        (errno.ENOSPC, {"user/max_user_namespaces": "0"}, "used up or forbidden", "sysctl -w user.max_user_namespaces"),
        (errno.ENOSPC, {"user/max_user_namespaces": "99"}, "max_user_namespaces = 99", "user.max_user_namespaces"),
        (errno.ENOSPC, {"user/max_user_namespaces": "2147483647"}, "forbidden", "a limit of its own"),
        (errno.EPERM, {"kernel/unprivileged_userns_clone": "0"}, "switched off", "kernel.unprivileged_userns_clone=1"),
        (
            errno.EPERM,
            {"kernel/apparmor_restrict_unprivileged_userns": "1"},
            "AppArmor forbids",
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (errno.EACCES, {"kernel/apparmor_restrict_unprivileged_userns": "1"}, "AppArmor", "apparmor_restrict"),
        (errno.EINVAL, {}, "has no user namespaces", "Linux 5.6"),
        (errno.EPERM, {}, "most likely a container's seccomp profile", "--security-opt"),
    ],
)
def test_each_switch_that_forbids_namespaces_is_named(
    why: int, settings: dict[str, str], reason: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "_setting", settings.get)
    told = namespaces._no_namespaces(OSError(why, "unshare"), as_root=False)
    assert reason in told.reason
    assert remedy in told.remedy


def test_root_that_cannot_become_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users.os, "getuid", lambda: 0)
    for effective, mapped in (("0", "0 0 4294967295"), ("ff", "0 1000 1"), ("0", "0 1000 1")):
        texts = {"status": f"Name:\tx\nCapEff:\t{effective}\n", "uid_map": mapped, "gid_map": mapped}
        monkeypatch.setattr(users.Path, "read_text", lambda path, *_, texts=texts: texts[path.name])
        with pytest.raises(Refused, match="may not become another user"):
            users.throw_away()
    for mapped, first in (("0 0 4294967295", 200_000), ("0 1000 1\n1 100000 65536", 32_768)):
        texts = {"status": "CapEff:\t000001ffffffffff\n", "uid_map": mapped, "gid_map": mapped}
        monkeypatch.setattr(users.Path, "read_text", lambda path, *_, texts=texts: texts[path.name])
        found = users.throw_away()
        assert found is not None
        assert found[0] == first


@pytest.mark.parametrize("tier", list(BACKENDS))
def test_a_package_that_is_not_installed_is_named(tier: str) -> None:
    async def start() -> None:
        backend = BACKENDS[tier]()
        try:
            await backend.start(SandboxSpec(packages=("nothing-such",)))
        finally:
            await backend.close()

    with pytest.raises(Unavailable) as told:
        asyncio.run(start())
    assert told.value.reason == "the distribution nothing-such is not installed"
    assert told.value.remedy == "Install it: pip install nothing-such"


def test_one_backend_is_used_from_several_loops_one_after_another() -> None:
    backend = BACKENDS["namespaces"]()

    async def first() -> Any:
        await backend.start(SPEC)
        return await opened(backend)

    async def second(stream: Any) -> bytes:
        assert (await call(stream, {"op": "write", "path": "a"}, b"kept"))[0]["status"] == "ok"
        other = await opened(backend)
        header, output = await run(other, "import os; os.listdir('.')")
        assert header["status"] == "ok"
        await backend.kill(other)
        return output + (await call(stream, {"op": "read", "path": "a", "offset": 0, "limit": 9}))[1]

    try:
        try:
            stream = asyncio.run(first())
        except Unavailable as error:
            skip(error)
        assert asyncio.run(second(stream)) == b"[]\nkept"
    finally:
        backend.kill_now()
    with pytest.raises(Unavailable, match="has not been started"):
        asyncio.run(backend.open(SPEC))
