"""What is examined: a URL, a stdio command, or an environment of ours that is served for the occasion."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shlex
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from mcpgym.control_plane.secret import FILE_VARIABLE, VARIABLE
from mcpgym_clients.doctor.http_wire import HttpConnection
from mcpgym_clients.doctor.processes import listening_process
from mcpgym_clients.doctor.stdio_wire import StdioConnection
from mcpgym_clients.doctor.wire import HANDSHAKE_VERSIONS, Connection, Era
from mcpgym_clients.failures import CommandFailed, UsageProblem

SECRETS = (VARIABLE, FILE_VARIABLE)


class Subject(Protocol):
    """A server under examination."""

    transport: str
    """``http`` or ``stdio``."""
    described: str
    timeout: float
    """Seconds one answer may take."""

    async def connect(self, era: Era, *, version: str = HANDSHAKE_VERSIONS[0], place: str | None = None) -> Connection:
        """A new client of its own, connected; at ``place`` where there are several."""
        ...

    async def new_place(self) -> str | None:
        """Another address of the server whose state should be its own; None where there is none."""
        ...

    async def leave(self, place: str | None) -> None:
        """A place is done with, and may be cleared away."""
        ...

    @property
    def places(self) -> int | None:
        """How many places are left; None where there are as many as are wanted."""
        ...

    def process(self) -> int | str:
        """The server's process id where it runs on this machine, or why it is not known."""
        ...


class HttpSubject:
    """A server at a URL. ``others`` are more URLs of it, each with a state of its own that nobody has touched."""

    transport = "http"

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float, others: Sequence[str] = ()) -> None:
        self.url = url
        self.described = _without_password(url)
        self.timeout = timeout
        self.headers = dict(headers)
        self._others = list(others)

    async def connect(
        self, era: Era, *, version: str = HANDSHAKE_VERSIONS[0], place: str | None = None
    ) -> HttpConnection:
        """A client with connections of its own."""
        connection = HttpConnection(place or self.url, era, self.headers, self.timeout, version)
        return await connection.open()

    async def new_place(self) -> str | None:
        """One of the other URLs, each once."""
        return self._others.pop(0) if self._others else None

    async def leave(self, place: str | None) -> None:
        """Nothing: it is not ours."""

    @property
    def places(self) -> int | None:
        """The other URLs that are left."""
        return len(self._others)

    def process(self) -> int | str:
        """The process that listens, where it is on this machine and may be seen."""
        parts = urlsplit(self.url)
        return listening_process(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))


class StdioSubject:
    """A command that speaks MCP on standard input and output. Every client is a process of its own."""

    transport = "stdio"

    def __init__(self, command: Sequence[str], timeout: float) -> None:
        self.command = list(command)
        self.described = shlex.join(command)
        self.timeout = timeout
        self.environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
        self.started: list[StdioConnection] = []

    async def connect(
        self, era: Era, *, version: str = HANDSHAKE_VERSIONS[0], place: str | None = None
    ) -> StdioConnection:
        """A new process, connected."""
        return await self.made(era, version).open()

    def made(
        self, era: Era, version: str = HANDSHAKE_VERSIONS[0], environment: Mapping[str, str] | None = None
    ) -> StdioConnection:
        """A connection that is not started yet, with other environment variables if given."""
        connection = StdioConnection(
            self.command, self.environment if environment is None else environment, era, self.timeout, version
        )
        self.started.append(connection)
        return connection

    async def new_place(self) -> str | None:
        """None: a process is a place."""
        return None

    async def leave(self, place: str | None) -> None:
        """Nothing."""

    @property
    def places(self) -> int | None:
        """None are left."""
        return 0

    def process(self) -> int | str:
        """There is one for each client."""
        return "every client is a process of its own"

    async def end(self) -> None:
        """End whatever still runs."""
        for connection in self.started:
            if connection.process is not None and connection.process.returncode is None:
                await connection.abandon()


class EnvironmentSubject(HttpSubject):
    """An environment served by ``mcpgym serve`` in a process of its own; each place is an episode of the same task."""

    def __init__(self, served: Served, environment: str, url: str, timeout: float) -> None:
        super().__init__(url, {}, timeout)
        self.described = f"{environment}, served by mcpgym at an episode's URL"
        self._served = served
        self._tokens: dict[str, str] = {}

    async def new_place(self) -> str | None:
        """The URL of a new episode of the same task, with the same seed."""
        url, token = await self._served.open()
        self._tokens[url] = token
        return url

    async def leave(self, place: str | None) -> None:
        """Close the episode."""
        if place is not None and (token := self._tokens.pop(place, None)) is not None:
            await self._served.close(token)

    @property
    def places(self) -> int | None:
        """As many as are wanted."""
        return None

    def process(self) -> int | str:
        """The process that was started."""
        return self._served.pid


class Served:
    """A child process that serves environments, and its control plane. See :func:`served`."""

    def __init__(self, process: asyncio.subprocess.Process, control: object, environment: str, split: str) -> None:
        from mcpgym.control_client import HttpControl

        assert isinstance(control, HttpControl)
        self.pid = process.pid
        self._control, self._environment, self._split = control, environment, split

    async def open(self, index: int = 0, seed: int = 0) -> tuple[str, str]:
        """The URL and the token of a new episode."""
        opened = await self._control.open(self._environment, split=self._split, index=index, seed=seed)
        assert opened.url is not None
        return opened.url, opened.token

    async def close(self, token: str) -> None:
        """Close an episode."""
        await self._control.close(token)


@contextlib.asynccontextmanager
async def served(environment: str, config: Sequence[str]) -> AsyncIterator[Served]:
    """Serve an environment in a child process, on loopback, for as long as this lasts.

    Raises:
        UnknownNameError, ConfigurationError, UsageProblem: there is no such environment or configuration.
        CommandFailed: the server does not start.
    """
    from mcpgym.control_client import HttpControl
    from mcpgym.registry import load_environment
    from mcpgym_clients.configuring.variables import unconfigured
    from mcpgym_clients.options import parse_config

    loaded = load_environment(environment, parse_config(config, [environment])[environment])
    split = next(iter(loaded.splits))
    secret = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory(prefix="mcpgym-doctor-") as folder:
        socket = Path(folder) / "control.sock"
        options = [part for item in config for part in ("--config", item)]
        where = ["--control-socket", str(socket)] if sys.platform != "win32" else ["--control-port", "0"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "mcpgym_clients", "serve", environment, "--port", "0", *where, *options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env={**{k: v for k, v in unconfigured([("serve",)]).items() if k not in SECRETS}, SECRETS[0]: secret},
            start_new_session=sys.platform != "win32",
        )  # fmt: skip
        reading: asyncio.Task[None] | None = None
        try:
            address = await _control_address(process)
            reading = asyncio.create_task(_drain(process))
            async with HttpControl(address, secret) as control:
                yield Served(process, control, loaded.name, split)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                try:
                    await asyncio.wait_for(process.wait(), 15)
                except TimeoutError:
                    process.kill()
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)


async def _control_address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    said: list[str] = []
    try:
        async with asyncio.timeout(60):
            while line := (await process.stderr.readline()).decode("utf-8", "replace"):
                said.append(line.strip())
                if line.startswith("Control plane: "):
                    return line.split(": ", 1)[1].strip()
    except TimeoutError:
        said.append("it did not say where it listens within 60 s")
    raise CommandFailed(f"the environment's server did not start: {' '.join(said[-3:])}")


async def _drain(process: asyncio.subprocess.Process) -> None:
    assert process.stderr is not None
    while await process.stderr.read(65536):
        pass


def checked_url(url: str) -> str:
    """``url``, if it can be an MCP endpoint.

    Raises:
        UsageProblem: it cannot.
    """
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise UsageProblem(f"{url} is no address of an MCP server; write http://HOST:PORT/mcp")
    return url


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    if "@" not in parts.netloc and not parts.query:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="…" if parts.query else "").geturl()
