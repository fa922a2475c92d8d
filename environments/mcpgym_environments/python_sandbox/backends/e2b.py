"""E2B: each session a Firecracker virtual machine of that provider's, without a network.

The machine's own user may become root in it, so nothing in it is more than a session's comfort: what holds is the
machine's boundary.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

from mcpgym_environments.python_sandbox.backends.program import command
from mcpgym_environments.python_sandbox.backends.remote import RemoteBackend, TextRemote
from mcpgym_environments.python_sandbox.backends.settings import LIFETIME, needed, setting, whole
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Unavailable


class E2B(RemoteBackend):
    """The back-end ``e2b``.

    Args:
        template: one of your E2B templates; it must have ``python3``. E2B's own by default.
        lifetime: seconds after which E2B ends a session by itself.
    """

    name = "e2b"
    level: Level = "vm"
    remedy = "Check E2B_API_KEY, and the template, if you named one."

    def __init__(self, template: str | None = None, lifetime: int | None = None) -> None:
        super().__init__()
        self._template = setting("template", template, "")
        self._lifetime = whole("lifetime", lifetime, LIFETIME)
        self._library: Any = None

    async def connect(self, spec: SandboxSpec) -> None:
        """Load the library; the key must be there.

        Raises:
            Unavailable: one of them is missing.
        """
        self._library = needed("e2b", "e2b")
        if not os.environ.get("E2B_API_KEY"):
            raise Unavailable("e2b: there is no E2B_API_KEY", "Set it to a key of your E2B account.")

    async def create(self, spec: SandboxSpec) -> E2BProcess:
        """A machine, and the agent's command in it."""
        machine = await self._library.AsyncSandbox.create(
            template=self._template or None,
            timeout=self._lifetime,
            metadata={"made-by": "mcpgym"},
            allow_internet_access=False,
        )
        process = E2BProcess(machine)
        try:
            await process.begin()
        except BaseException:
            await process.kill()
            raise
        return process

    async def disconnect(self) -> None:
        """There is nothing to let go of: each machine has its own connection."""

    def facts(self) -> Mapping[str, JSON]:
        """Which template."""
        return {"template": self._template or "default"}


class E2BProcess(TextRemote):
    """A command in a machine of E2B's; the library gives its output as text."""

    def __init__(self, machine: Any) -> None:
        super().__init__()
        self._machine = machine
        self._command: Any = None

    async def begin(self) -> None:
        """Start the agent's command; what it prints is fed to us as it comes, and kept nowhere else."""
        self._command = await self._machine.commands.run(
            "exec " + shlex.join(command(text=True)),
            background=True,
            stdin=True,
            on_stdout=self.feed,
            timeout=0,
            retain_output=False,
        )
        self._waiting = _watched(self._command, self)

    async def write_text(self, text: str) -> None:
        """Write one line to its input."""
        await self._machine.commands.send_stdin(self._command.pid, text)

    async def kill(self) -> None:
        """End the machine."""
        await self._machine.kill()


def _watched(command: Any, process: E2BProcess) -> Any:
    import asyncio

    async def watch() -> None:
        try:
            await command.wait()
        except Exception:  # it ended with a status, or its connection did
            pass
        finally:
            process.finish()

    return asyncio.ensure_future(watch())
