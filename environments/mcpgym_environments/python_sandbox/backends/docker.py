"""Containers of an engine of this machine, or one it can reach: Docker or Podman, with runc, crun, gVisor or Kata.

**The engine's command line, not its Python library.** A session is one ``docker run -i`` whose standard input and
output are the stream. The command carries bytes as they are and keeps the two outputs apart; it knows contexts, TLS,
``DOCKER_HOST`` over ssh, rootless sockets and credential helpers; and ``docker`` and ``podman`` take the same words.
The library of Docker hands out the socket below its HTTP library, with frames of its own on it; Podman's cannot attach
with an input at all. So there is no package to install.

The container gets the agent over its input (see ``program.py``): no mount, which an engine elsewhere could not do, and
no image of ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from uuid import uuid4

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.backends import program
from mcpgym_environments.python_sandbox.backends.settings import IMAGE, setting
from mcpgym_environments.python_sandbox.backends.spawned import Spawned, SpawnedBackend
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Unavailable

ASK_SECONDS = 20.0
"""How long an engine may take to say what it is."""
PULL_SECONDS = 600.0
"""How long fetching an image may take."""
LABEL = "mcpgym=python-sandbox"
USER = "1000:1000"


class Container(SpawnedBackend):
    """The back-ends ``docker`` and ``podman``.

    Args:
        engine: the command: ``docker`` or ``podman``.
        image: an image that has ``python3``, 3.11 or later, and the packages that are asked for.
        runtime: the engine's runtime: its own by default, ``runsc`` for gVisor, ``kata`` for a virtual machine.
        options: more options for ``run``, for an engine that needs them.
    """

    level: Level = "namespaces"
    both_ways = True

    def __init__(
        self,
        engine: str = "docker",
        image: str | None = None,
        runtime: str | None = None,
        options: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        if engine not in ("docker", "podman"):
            raise ConfigurationError(f"a container engine is docker or podman, not {engine!r}")
        self.name = engine
        self._image = setting("image", image, IMAGE)
        self._runtime = setting("runtime", runtime, "")
        self._options = list(options) if options is not None else setting("options", None, "").split()
        self.level = level_of(self._runtime)
        self._preamble = b""

    async def prepare(self, spec: SandboxSpec) -> Mapping[str, JSON]:
        """See that the engine answers and that the image is there, fetching it if it is not.

        Raises:
            Unavailable: one of them is not to be had.
        """
        if shutil.which(self.name) is None:
            raise Unavailable(f"there is no {self.name} command here", f"Install {self.name}, or use another back-end.")
        version = await self._asked(
            ["version", "--format", "{{.Server.Version}}" if self.name == "docker" else "{{.Client.Version}}"],
            ASK_SECONDS,
            f"Start {self.name}'s service, or let this user reach it.",
        )
        try:
            await self._asked(["image", "inspect", self._image], ASK_SECONDS, "")
        except Unavailable:
            await self._asked(
                ["pull", "--quiet", self._image],
                PULL_SECONDS,
                f"Fetch the image by hand ({self.name} pull {self._image}), or name one that is there with "
                "MCPGYM_SANDBOX_IMAGE.",
            )
        self._preamble = program.preamble()
        return {"engine": version, "image": self._image, **({"runtime": self._runtime} if self._runtime else {})}

    async def _asked(self, words: list[str], seconds: float, remedy: str) -> str:
        """What the engine says to ``words``.

        Raises:
            Unavailable: it refuses, or says nothing in time.
        """
        try:
            answer = await asyncio.to_thread(
                subprocess.run,
                [self.name, *words],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{self.name} {words[0]} gave no answer within {seconds:g} s", remedy) from None
        if answer.returncode != 0:
            said = " ".join(answer.stderr.split())[-400:] or f"exit {answer.returncode}"
            raise Unavailable(f"{self.name} {words[0]} failed: {said}", remedy)
        return answer.stdout.strip()[:200]

    def command(self, spec: SandboxSpec, name: str) -> list[str]:
        """``run`` with no network, no rights, nothing to write to but two bounded file systems, and limits."""
        limits = spec.limits
        size = limits.workspace_bytes
        mode = f"rw,nosuid,nodev,size={size},mode=1777"
        mode += f",nr_inodes={limits.workspace_files},uid=1000,gid=1000" if self.name == "docker" else ",U"
        whole = limits.memory + 2 * size + 2**27  # the session's own, its files, and the agent's
        pids = limits.processes + (8 if self.level == "namespaces" else 1024)  # a kernel in user space has its own
        podman = ["--read-only-tmpfs=false"] if self.name == "podman" else []
        runtime = ["--runtime", self._runtime] if self._runtime else []
        flags = ["--runtime-flag=network=none"] if podman and self.level == "gvisor" else []
        return [
            self.name,
            *([] if self.name == "docker" else [*runtime, *flags]),
            "run", "--rm", "--interactive", "--log-driver", "none", "--name", name, "--label", LABEL, "--pull", "never",
            *(runtime if self.name == "docker" else []),
            "--network", "none", "--read-only", *podman, "--tmpfs", f"/work:{mode}", "--tmpfs", f"/tmp:{mode}",
            "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", USER, "--workdir", "/work",
            "--hostname", "sandbox", "--ipc", "none",
            "--pids-limit", str(pids), "--memory", str(whole), "--memory-swap", str(whole),
            "--cpus", "1", "--ulimit", f"nofile={limits.open_files + 32}", "--ulimit", "core=0",
            "--env", "TMPDIR=/tmp", "--env", "HOME=/work",
            *self._options,
            "--entrypoint", "python3", self._image, *program.command()[1:],
        ]  # fmt: skip

    def preamble(self) -> bytes:
        """The agent itself."""
        return self._preamble

    def named(self) -> str:
        """A name to remove the container by."""
        return f"mcpgym-{uuid4().hex[:16]}"

    def remedy(self, said: str) -> str:
        """What a person does about what the engine said."""
        if "runtime" in said.lower() and self._runtime:
            return f"Is {self._runtime} installed, and known to {self.name}?"
        if "cgroup" in said or "controller" in said:
            return "This machine lets the engine set no limits; give it cgroups, or see MCPGYM_SANDBOX_OPTIONS."
        if "ulimit" in said or "rlimit" in said.lower():
            return "The engine may not set a limit of its own choice: MCPGYM_SANDBOX_OPTIONS='--ulimit nproc=4096'."
        return f"Does this run: {self.name} run --rm {self._image} python3 -V ?"

    async def release(self, one: Spawned) -> None:
        """Remove the container; its command line was only the way to it."""
        await asyncio.to_thread(self._removed, one, ASK_SECONDS)

    def _removed(self, one: Spawned, seconds: float) -> None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                self._removal([one]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
            )

    def _removal(self, sessions: Sequence[Spawned]) -> list[str]:
        now = ["--time", "0"] if self.name == "podman" else []
        return [self.name, "rm", "--force", *now, *(one.name for one in sessions)]

    def release_now(self, sessions: Sequence[Spawned]) -> None:
        """Tell the engine, and do not wait for it."""
        with contextlib.suppress(OSError):
            subprocess.Popen(
                self._removal(sessions),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )


class Docker(Container):
    """The back-end ``docker``; see :class:`Container`."""

    def __init__(
        self, image: str | None = None, runtime: str | None = None, options: Sequence[str] | None = None
    ) -> None:
        super().__init__("docker", image, runtime, options)


class Podman(Container):
    """The back-end ``podman``; see :class:`Container`."""

    def __init__(
        self, image: str | None = None, runtime: str | None = None, options: Sequence[str] | None = None
    ) -> None:
        super().__init__("podman", image, runtime, options)


def level_of(runtime: str) -> Level:
    """What a container runtime of this name keeps in."""
    if "runsc" in runtime or "gvisor" in runtime:
        return "gvisor"
    return "vm" if "kata" in runtime or "firecracker" in runtime else "namespaces"
