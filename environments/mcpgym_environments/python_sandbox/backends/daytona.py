"""Daytona: each session a sandbox of that provider's, without a network.

Its default class is a container that shares a kernel with others; snapshots of the class ``linux-vm`` are virtual
machines (Daytona's documentation, "Isolation"). Which of the two it is, is asked of the sandbox itself.
"""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from mcpgym_environments.python_sandbox.backends.program import command
from mcpgym_environments.python_sandbox.backends.remote import OPEN_SECONDS, RemoteBackend, TextRemote
from mcpgym_environments.python_sandbox.backends.settings import IMAGE, LIFETIME, needed, setting, whole
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Unavailable


class Daytona(RemoteBackend):
    """The back-end ``daytona``.

    Args:
        snapshot: the name of a snapshot that has Python (``daytona-vm-small`` is one of virtual machines).
        image: where there is no snapshot, an image that has Python.
        lifetime: seconds after which Daytona ends a session by itself, in whole minutes.
    """

    name = "daytona"
    level: Level = "namespaces"
    remedy = "Check DAYTONA_API_KEY, and the snapshot or image, if you named one."

    def __init__(self, snapshot: str | None = None, image: str | None = None, lifetime: int | None = None) -> None:
        super().__init__()
        self._snapshot = setting("snapshot", snapshot, "")
        self._image = setting("image", image, IMAGE)
        self._lifetime = whole("lifetime", lifetime, LIFETIME)
        self._library: Any = None
        self._client: Any = None

    async def connect(self, spec: SandboxSpec) -> None:
        """Load the library and make a client.

        Raises:
            Unavailable: the library or the credentials are missing.
        """
        self._library = needed("daytona", "daytona")
        if not os.environ.get("DAYTONA_API_KEY") and not os.environ.get("DAYTONA_JWT_TOKEN"):
            raise Unavailable("daytona: there is no DAYTONA_API_KEY", "Set it to a key of your Daytona account.")
        self._client = self._library.AsyncDaytona()
        self.level = "namespaces"

    async def create(self, spec: SandboxSpec) -> DaytonaProcess:
        """A sandbox, and the agent's command in it."""
        minutes = -(-self._lifetime // 60)
        common = {
            "labels": {"made-by": "mcpgym"},
            "ephemeral": True,
            "auto_stop_interval": minutes,
            "ttl_minutes": minutes,
            "network_block_all": True,
        }
        if self._snapshot:
            wanted = self._library.CreateSandboxFromSnapshotParams(snapshot=self._snapshot, **common)
        else:
            gibibytes = -(-spec.limits.memory // 2**30)
            resources = self._library.Resources(cpu=1, memory=gibibytes, disk=3)
            wanted = self._library.CreateSandboxFromImageParams(image=self._image, resources=resources, **common)
        sandbox = await self._client.create(wanted, timeout=OPEN_SECONDS)
        process = DaytonaProcess(self._library, self._client, sandbox)
        try:
            await process.begin()
        except BaseException:
            await process.kill()
            raise
        self.level = "vm" if "vm" in str(sandbox.sandbox_class or "") else "namespaces"
        return process

    async def disconnect(self) -> None:
        """Close the client."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    def facts(self) -> Mapping[str, JSON]:
        """Which snapshot or image."""
        return {"snapshot": self._snapshot} if self._snapshot else {"image": self._image}


class DaytonaProcess(TextRemote):
    """A command in a session of a sandbox of Daytona's; input and output are text."""

    def __init__(self, library: Any, client: Any, sandbox: Any) -> None:
        super().__init__()
        self._library = library
        self._client = client
        self._sandbox = sandbox
        self._session = f"mcpgym-{uuid4().hex}"
        self._command = ""
        self._following: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Start the agent's command, and follow what it prints."""
        process = self._sandbox.process
        await process.create_session(self._session)
        request = self._library.SessionExecuteRequest(
            command="exec " + shlex.join(command(text=True)), run_async=True, suppress_input_echo=True
        )
        self._command = (await process.execute_session_command(self._session, request)).cmd_id
        self._following = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        try:
            await self._sandbox.process.get_session_command_logs_async(
                self._session, self._command, self.feed, _nothing
            )
        except Exception:  # the connection ended; so has the session, for us
            pass
        finally:
            self.finish()

    async def write_text(self, text: str) -> None:
        """Write one line to its input."""
        await self._sandbox.process.send_session_command_input(self._session, self._command, text)

    async def kill(self) -> None:
        """Delete the sandbox."""
        if self._following is not None:
            self._following.cancel()
        await self._client.delete(self._sandbox)


async def _nothing(text: str) -> None:
    """What the command says on standard error is not kept."""
