"""Modal: each session a container of that provider's on gVisor, or, where asked for, a virtual machine; no network."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from mcpgym.errors import ConfigurationError
from mcpgym_environments.python_sandbox.backends.program import command
from mcpgym_environments.python_sandbox.backends.remote import RemoteBackend
from mcpgym_environments.python_sandbox.backends.settings import LIFETIME, needed, setting, whole
from mcpgym_environments.python_sandbox.sessions.backend import JSON, Level, SandboxSpec, Unavailable

APP = "mcpgym-sandbox"
"""The Modal app that the sandboxes belong to; made if it is missing."""


class Modal(RemoteBackend):
    """The back-end ``modal``.

    Args:
        image: an image of a registry that has Python; without one, Modal's own Debian with the packages of the
            specification installed.
        runtime: ``gvisor`` or ``vm``, as Modal offers them.
        lifetime: seconds after which Modal ends a session by itself.
    """

    name = "modal"
    level: Level = "gvisor"
    remedy = "Check the account (modal token new), and the image, if you named one."

    def __init__(
        self, image: str | None = None, runtime: Literal["gvisor", "vm"] | None = None, lifetime: int | None = None
    ) -> None:
        super().__init__()
        self._image = setting("image", image, "")
        chosen = setting("runtime", runtime, "gvisor")
        if chosen not in ("gvisor", "vm"):
            raise ConfigurationError(f"modal: the runtime {chosen!r} is none of Modal's: gvisor, vm")
        self.level = "vm" if chosen == "vm" else "gvisor"
        self._lifetime = whole("lifetime", lifetime, LIFETIME)
        self._library: Any = None
        self._app: Any = None
        self._made: Any = None

    async def connect(self, spec: SandboxSpec) -> None:
        """Load the library, find a token, look up the app and describe the image.

        Raises:
            Unavailable: the library or a token is missing.
        """
        self._library = modal = needed("modal", "modal")
        if (missing := _without_token()) is not None:
            raise Unavailable(missing, "Run modal token new, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET.")
        self._app = await modal.App.lookup.aio(APP, create_if_missing=True)
        if self._image:
            self._made = modal.Image.from_registry(self._image)
        else:
            self._made = modal.Image.debian_slim(python_version="3.12")
            if spec.packages:
                self._made = self._made.pip_install(*spec.packages)

    async def create(self, spec: SandboxSpec) -> ModalProcess:
        """A sandbox, and the agent's command in it."""
        mebibytes = spec.limits.memory // 2**20 + 256  # and the agent's own
        sandbox = await self._library.Sandbox.create.aio(
            app=self._app,
            image=self._made,
            timeout=self._lifetime,
            cpu=1.0,
            memory=(mebibytes, mebibytes),
            runtime=self.level,
            block_network=True,
        )
        try:
            return ModalProcess(sandbox, await sandbox.exec.aio(*command(), text=False))
        except BaseException:
            await sandbox.terminate.aio()
            raise

    async def disconnect(self) -> None:
        """There is nothing to let go of."""

    def facts(self) -> Mapping[str, JSON]:
        """Which image."""
        return {"image": self._image or "debian_slim"}


class ModalProcess:
    """A command in a sandbox of Modal's; its streams carry bytes."""

    def __init__(self, sandbox: Any, process: Any) -> None:
        self._sandbox = sandbox
        self._process = process
        self._output = process.stdout.__aiter__()

    async def write(self, data: bytes) -> None:
        """Write all of it to its input."""
        self._process.stdin.write(data)
        await self._process.stdin.drain.aio()

    async def read(self) -> bytes:
        """More of its output."""
        async for part in self._output:
            if part:
                return bytes(part)
        return b""

    async def kill(self) -> None:
        """End the sandbox."""
        await self._sandbox.terminate.aio()


def _without_token() -> str | None:
    """Why there is no way into an account, if there is none."""
    configured = Path(os.environ.get("MODAL_CONFIG_PATH", "~/.modal.toml")).expanduser()
    if os.environ.get("MODAL_TOKEN_ID") or configured.is_file():
        return None
    return f"modal: there is neither MODAL_TOKEN_ID nor {configured}"
