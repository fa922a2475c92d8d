"""Prime Intellect: each session a virtual machine of that provider's, with its network closed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from mcpgym_environments.python_sandbox.backends.program import command
from mcpgym_environments.python_sandbox.backends.remote import RemoteBackend
from mcpgym_environments.python_sandbox.backends.settings import IMAGE, LIFETIME, needed, setting, whole
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Unavailable

NOWHERE: list[str] = []
"""The addresses that a session may reach."""


class Prime(RemoteBackend):
    """The back-end ``prime``.

    Args:
        image: an image that has Python.
        lifetime: seconds after which the provider ends a session by itself, in whole minutes.
    """

    name = "prime"
    level: Level = "vm"
    remedy = "Check PRIME_API_KEY (or run prime login), and the image, if you named one."

    def __init__(self, image: str | None = None, lifetime: int | None = None) -> None:
        super().__init__()
        self._image = setting("image", image, IMAGE)
        self._lifetime = whole("lifetime", lifetime, LIFETIME)
        self._library: Any = None
        self._client: Any = None

    async def connect(self, spec: SandboxSpec) -> None:
        """Load the library, find the key, make a client.

        Raises:
            Unavailable: the library or the key is missing.
        """
        self._library = needed("prime_sandboxes", "prime-sandboxes")
        if not os.environ.get("PRIME_API_KEY") and not self._library.Config().api_key:
            raise Unavailable("prime: there is no PRIME_API_KEY", "Set it, or run prime login.")
        self._client = self._library.AsyncSandboxClient()

    async def create(self, spec: SandboxSpec) -> PrimeProcess:
        """A machine, and the agent's command in it."""
        wanted = self._library.CreateSandboxRequest(
            name=f"mcpgym-{uuid4().hex[:12]}",
            docker_image=self._image,
            cpu_cores=1.0,
            memory_gb=float(-(-spec.limits.memory // 2**30)),
            disk_size_gb=3.0,
            network_allowlist=NOWHERE,
            timeout_minutes=-(-self._lifetime // 60),
            labels=["mcpgym"],
        )
        machine = await self._client.create(wanted)
        try:
            await self._client.wait_for_creation(machine.id)
            process = await self._client.open_process(machine.id, "exec " + shlex.join(command()), working_dir="/tmp")
        except BaseException:
            await self._client.delete(machine.id)
            raise
        return PrimeProcess(self._client, machine.id, process)

    async def disconnect(self) -> None:
        """Close the client."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def facts(self) -> Mapping[str, JSON]:
        """Which image."""
        return {"image": self._image}


class PrimeProcess:
    """A command in a machine of Prime Intellect's; its streams carry bytes."""

    def __init__(self, client: Any, machine: str, process: Any) -> None:
        self._client = client
        self._machine = machine
        self._process = process

    async def write(self, data: bytes) -> None:
        """Write all of it to its input."""
        for start in range(0, len(data), 1 << 15):
            await self._process.write_stdin(data[start : start + (1 << 15)])

    async def read(self) -> bytes:
        """More of its output."""
        async for part in self._process.stdout:
            if part:
                return bytes(part)
        return b""

    async def kill(self) -> None:
        """Delete the machine."""
        await self._client.delete(self._machine)
