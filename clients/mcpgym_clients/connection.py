"""The server that a command works with: a running one, or one of its own on loopback for as long as it takes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.control import ControlPlane, LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes, Limits

if TYPE_CHECKING:
    from mcpgym.receipts import Signer


@asynccontextmanager
async def running_server(address: str, secret_file: Path | None) -> AsyncIterator[ControlPlane]:
    """The control plane of the running server at ``address``.

    Raises:
        ConfigurationError: the address or the secret is none.
    """
    from mcpgym.control_client import HttpControl
    from mcpgym.control_plane.address import resolve_control_address
    from mcpgym.control_plane.secret import configured_secret

    found = resolve_control_address(address, configured_secret(file=secret_file))
    control = HttpControl(found.url, found.secret)
    try:
        yield control
    finally:
        await control.aclose()


@asynccontextmanager
async def own_server(
    *environments: Environment[Any, Any, Any],
    signer: Signer | None = None,
    limits: Limits | None = None,
    closed: bool = False,
) -> AsyncIterator[ControlPlane]:
    """The control plane of a server in this process; its players' URLs are on loopback, at a free port.

    With ``closed``, players can start no episodes of their own, and its secret is one that nobody was ever told.
    """
    from mcpgym.control_plane.secret import new_secret
    from mcpgym.serving import serving

    episodes = Episodes({environment.name: environment for environment in environments}, limits)
    async with serving(episodes, bare=not closed, secret=new_secret() if closed else None) as server:
        yield _Lent(episodes, server.url, signer)


class _Lent(LocalControl):
    """The control plane of a server that outlives those who use it: it ends its episodes itself."""

    async def aclose(self) -> None:
        """Nothing: the server does it."""
