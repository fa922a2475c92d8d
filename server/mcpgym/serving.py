"""One process that serves episodes: the players' listener and the control plane's, side by side in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mcpgym.background import HttpServer, cancel, held
from mcpgym.control import LocalControl
from mcpgym.control_plane.address import HAS_UNIX_SOCKETS, LOOPBACK
from mcpgym.control_plane.app import control_app
from mcpgym.control_plane.listeners import Listener, listen_tcp, listen_unix
from mcpgym.control_plane.secret import VARIABLE, configured_secret, new_secret, take_secret
from mcpgym.episodes import Episodes
from mcpgym.errors import ConfigurationError
from mcpgym.metrics import LoopLag, Metrics
from mcpgym.stopping import Stopping
from mcpgym.telemetry import switch
from mcpgym.telemetry.settings import end
from mcpgym.wire import player_app

if TYPE_CHECKING:
    from mcpgym.receipts import Signer

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 2.0
"""How long calls in flight may take to finish once the server stops; then their episodes end, and they answer that."""
DRAIN_LOOK_SECONDS = 0.1
"""How often a server that drains looks whether its episodes have ended."""
LAST_SECONDS = 1.0
"""How long telemetry may take to go out when the process is ended at once."""
END_SECONDS = 5.0
"""How long environments may take to release their states once the server stops."""


@dataclass(frozen=True)
class Serving:
    """A running server.

    ``url`` is the base of players' URLs (``http://127.0.0.1:8000``), ``control_url`` the control plane's address,
    ``secret`` its secret and ``secret_is_new`` whether that was made for this run. ``bare`` says whether players may
    start episodes themselves. ``control`` is the same control plane without HTTP.
    """

    url: str
    control_url: str
    secret: str = field(repr=False)
    secret_is_new: bool
    bare: bool
    control: LocalControl = field(repr=False)
    control_listener: Listener = field(repr=False)

    @property
    def episodes(self) -> Episodes:
        """What is served."""
        return self.control.episodes

    @property
    def signer(self) -> Signer | None:
        """Who signs its scores."""
        return self.control.signer


class Announced(Protocol):
    """What is said of a server when it is up."""

    @property
    def url(self) -> str:
        """The base of players' URLs."""
        ...

    @property
    def control_url(self) -> str:
        """The control plane's address."""
        ...

    @property
    def secret(self) -> str:
        """Its secret."""
        ...

    @property
    def secret_is_new(self) -> bool:
        """Whether that was made for this run."""
        ...

    @property
    def bare(self) -> bool:
        """Whether players may start episodes themselves."""
        ...

    @property
    def episodes(self) -> Episodes:
        """What is served."""
        ...

    @property
    def signer(self) -> Signer | None:
        """Who signs its scores."""
        ...


@contextlib.asynccontextmanager
async def serving(
    episodes: Episodes,
    host: str = "127.0.0.1",
    port: int = 0,
    control_port: int | None = None,
    control_socket: str | Path | None = None,
    secret: str | None = None,
    fast_lane: bool = True,
    *,
    bare: bool = True,
    control_host: str | None = None,
    secret_file: str | Path | None = None,
    allowed_hosts: Sequence[str] = (),
    public_url: str | None = None,
    signer: Signer | None = None,
    player_socket: str | Path | None = None,
) -> AsyncIterator[Serving]:
    """Serve ``episodes`` in the running event loop; both listeners answer when it yields.

    On leaving, new connections are refused, requests in flight get a few seconds, every episode ends, and the
    environments are shut down.

    Args:
        episodes: what to serve; they end with it.
        host: where players connect; beyond loopback only when asked.
        port: their port; 0 takes a free one.
        control_port: serve the control plane on this TCP port (0: a free one) instead of a unix socket.
        control_socket: the unix socket's path; by default one in a private folder of this user, named by the port.
        secret: the control plane's secret; else ``secret_file``, ``MCPGYM_CONTROL_SECRET``, or a new one.
        fast_lane: whether plain tool calls skip the MCP SDK.
        bare: whether players may start episodes themselves, at ``/mcp``; else they reach only what was opened for them.
        control_host: the host for ``control_port``; loopback unless given.
        secret_file: a file that holds the secret.
        allowed_hosts: further names that players may call this server by (the Host header).
        public_url: the base of players' URLs where they differ from the listener's (behind a proxy).
        signer: signs every score; None for no receipts.
        player_socket: a unix socket for players, in place of host and port: for who stands before several servers.

    Raises:
        ConfigurationError: an address is taken or cannot be, options contradict, or the secret will not do.
    """
    found = configured_secret(secret, secret_file)
    token = found if found is not None else new_secret()
    async with contextlib.AsyncExitStack() as stack:
        player = listen_tcp(host, port, "--port") if player_socket is None else listen_unix(Path(player_socket), 0)
        stack.callback(player.close)
        control_listener = control_listener_for(player, control_host, control_port, control_socket)
        stack.callback(control_listener.close)
        control = LocalControl(episodes, (public_url or player.url).rstrip("/"), signer)
        lag = LoopLag()
        if switch.measuring is not None:
            switch.measuring.watch_lag(lag)
        behind = control_app(
            control, Metrics(episodes, lag), token, hosts=control_hosts(control_listener, control_host)
        )
        front = player_app(episodes, allowed_hosts=[*allowed_hosts, *own_names(host)], fast_lane=fast_lane, bare=bare)

        stack.push_async_callback(_end, episodes)
        for work in (episodes.expire_forever(), lag.sample_forever()):
            stack.push_async_callback(cancel, asyncio.ensure_future(work))
        await stack.enter_async_context(held(front.running))
        servers = [HttpServer(front, player.socket), HttpServer(behind, control_listener.socket)]
        stack.push_async_callback(_stop, servers, episodes)
        for server in servers:
            await server.begin()
        stack.callback(control_listener.remove_file)  # first of all, so that nobody finds it any more
        yield Serving(control.url or "", control_listener.url, token, found is None, bare, control, control_listener)


def run_server(episodes: Episodes, **options: Any) -> int:
    """Serve ``episodes`` until SIGINT or SIGTERM, as a program's whole work, and return its exit code.

    Where to connect is said on standard error; the secret only if it is new. (Or by ``announce``, where it is given.)

    The first signal ends it in order, within seconds; a second one at once. With ``drain_seconds``, SIGTERM lets the
    episodes that run come to their end for so long, while no other begins. Where a tool's thread is stuck and would
    keep the process alive, the process is ended here and this function does not return.

    Args:
        episodes: what to serve.
        **options: as for :func:`serving`; ``announce`` and ``drain_seconds`` (0 by default) besides.

    Returns:
        0 after SIGTERM, 130 after SIGINT.

    Raises:
        ConfigurationError: as for :func:`serving`.
    """
    allow_many_connections()
    options["secret"] = take_secret(options.get("secret"), options.pop("secret_file", None))
    announce = options.pop("announce", None) or announce_server
    drain_seconds = float(options.pop("drain_seconds", 0.0))

    async def serve(stopping: Stopping) -> None:
        async with serving(episodes, **options) as server:
            stopping.last_rites += [server.control_listener.remove_file, lambda: end(LAST_SECONDS)]
            announce(server)
            await stopping.wait()
            if stopping.is_patient and drain_seconds:
                await drain(episodes, drain_seconds)

    return Stopping(drain_seconds).run(serve)


async def drain(episodes: Episodes, seconds: float) -> None:
    """Let no episode begin, and wait until those that run have ended, for ``seconds`` at most."""
    episodes.draining = True
    deadline = time.monotonic() + seconds
    while episodes.unfinished and time.monotonic() < deadline:  # noqa: ASYNC110 (many things end an episode)
        await asyncio.sleep(DRAIN_LOOK_SECONDS)
    if left := episodes.unfinished:
        logger.warning("%d episodes had not ended %g s after the server was told to stop", left, seconds)


def announce_server(server: Announced) -> None:
    """Say on standard error where to connect."""
    lines = [
        "Players connect to (MCP, streamable HTTP):",
        f"  {server.url}/mcp  (every environment)",
        *(f"  {server.url}/{name}/mcp" for name in server.episodes.environments),
    ]
    if not server.bare:
        lines = [f"Players connect to {server.url}/e/TOKEN/mcp, the URL of an episode that the control plane opened."]
    lines += [f"Control plane: {server.control_url}"]
    if server.secret_is_new:
        lines += [
            "Its secret, shown this once (evaluators and trainers need it):",
            f"  export {VARIABLE}={server.secret}",
        ]
    else:
        lines += [f"Its secret is the one you configured ({VARIABLE} for clients)."]
    if server.signer is not None:
        lines += [f"Scores are signed by key {server.signer.key.public.id} (mcpgym key)."]
    with contextlib.suppress(OSError, ValueError):  # whoever started us may have closed it
        print(*lines, "Stop with Ctrl-C.", sep="\n", file=sys.stderr, flush=True)


def control_listener_for(player: Listener, host: str | None, port: int | None, path: str | Path | None) -> Listener:
    """Where the control plane of the server with this ``player`` listener is to listen."""
    if port is not None and path is not None:
        raise ConfigurationError("the control plane has a port or a socket, not both: drop one of the two options")
    if host is not None and port is None:
        raise ConfigurationError("a control host needs a control port (--control-port)")
    if port is None and HAS_UNIX_SOCKETS:
        return listen_unix(None if path is None else Path(path), player.socket.getsockname()[1])
    if path is not None:
        raise ConfigurationError("there are no unix sockets here; use --control-port")
    return listen_tcp(host or "127.0.0.1", port or 0, "--control-port")


def control_hosts(listener: Listener, host: str | None) -> Collection[str] | None:
    """The Host names a control plane answers to. One that listens on every address cannot know its names."""
    if listener.path is not None or host in ("0.0.0.0", "::"):
        return None
    return LOOPBACK if host is None else LOOPBACK | {host.lower()}


def allow_many_connections() -> None:
    """Raise the soft limit on open files, often 1024, to the hard one: each of many episodes may have a connection."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems allow less than they say
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def own_names(host: str) -> list[str]:
    """The name a listener beyond loopback was given is one that players may call it by."""
    if host in LOOPBACK or host in ("0.0.0.0", "::"):
        return []
    return [f"[{host}]" if ":" in host else host]


async def _stop(servers: Sequence[HttpServer], episodes: Episodes) -> None:
    stopping = asyncio.gather(*(server.end() for server in servers))
    await asyncio.wait({stopping}, timeout=PATIENCE_SECONDS)
    if not stopping.done():
        ending = asyncio.ensure_future(episodes.close_all())
        await stopping
        await cancel(ending)


async def _end(episodes: Episodes) -> None:
    try:
        async with asyncio.timeout(END_SECONDS):
            await episodes.aclose()
    except TimeoutError:
        logger.error("some environments did not release their episodes within %g s", END_SECONDS)
