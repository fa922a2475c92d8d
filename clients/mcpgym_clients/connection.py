"""The server that a command works with: a running one, or one of its own on loopback for as long as it takes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpgym.control import ControlPlane, LocalControl
from mcpgym.environment import Environment
from mcpgym.episodes import Episodes, Limits
from mcpgym_clients.failures import UsageProblem

if TYPE_CHECKING:
    from mcpgym.receipts import Signer


ON_RAY = "ray"
"""In place of an address: every server that ``mcpgym serve --ray`` runs on the cluster."""


def addresses_in(text: str) -> list[str]:
    """The addresses in what was given as ``--server``: some with commas between; ``@FILE``, one a line; or ``ray``.

    Raises:
        UsageProblem: there is none, or the file cannot be read.
    """
    found: list[str] = []
    for part in text.split(","):
        part = part.strip()
        if not part.startswith("@"):
            found += [part] if part else []
            continue
        try:
            lines = Path(part[1:]).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageProblem(f"--server {part}: the file with servers' addresses cannot be read: {error}") from None
        found += [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not found:
        raise UsageProblem(f"--server {text!r}: no address of a server is in it")
    return found


@asynccontextmanager
async def running_server(address: str, secret_file: Path | None) -> AsyncIterator[ControlPlane]:
    """The control plane of the running server at ``address``, or of all that are named there, as one.

    Raises:
        UsageProblem: no address is in it.
        ConfigurationError: an address or the secret is none, or the servers do not serve the same.
        ServerUnavailable: several were named, and none answers.
    """
    from mcpgym.control_client import HttpControl
    from mcpgym.control_plane.address import ControlAddress, resolve_control_address
    from mcpgym.control_plane.secret import configured_secret

    secret = configured_secret(file=secret_file)
    found: list[ControlAddress] = []
    for one in addresses_in(address):
        if one == ON_RAY:
            from mcpgym_clients.on_ray.servers import find_servers

            found += await find_servers()
        else:
            found.append(resolve_control_address(one, secret))
    controls = [HttpControl(one.url, one.secret) for one in found]
    async with AsyncExitStack() as stack:
        for control in controls:
            stack.push_async_callback(control.aclose)
        if len(controls) == 1:
            yield controls[0]
            return
        from mcpgym.fleet.pool import Pool

        pool = await Pool.of(controls)
        stack.push_async_callback(pool.aclose)
        yield pool


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
    secret = new_secret() if closed else None
    with _lag_untold():
        async with serving(episodes, bare=not closed, secret=secret) as server:
            yield _Lent(episodes, server.url, signer)


@contextmanager
def _lag_untold() -> Iterator[None]:
    """Without warnings that the event loop is late: they are for who runs a server, not for who plays."""
    logger = logging.getLogger("mcpgym.metrics")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Lent(LocalControl):
    """The control plane of a server that outlives those who use it: it ends its episodes itself."""

    async def aclose(self) -> None:
        """Nothing: the server does it."""
