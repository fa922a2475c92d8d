"""Servers as processes: each with a keeper, a folder and an environment of its own, and pipes read with a limit."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcpgym.errors import ConfigurationError, InfrastructureError

MAX_LINE = 16 * 1024 * 1024
"""Bytes of one message; of a longer one nothing is kept."""
MAX_NOISE = 64 * 1024 * 1024
"""Bytes that are no messages, beyond which the server is ended."""
CHUNK = 256 * 1024
KEPT_LOG = 2_000
"""Characters of the end of its standard error that are kept."""
EXIT_SECONDS = 2.0
"""How long a server has to end by itself once its input is closed, as the protocol asks; then it is killed."""
KILL_SECONDS = 8.0
TOO_LONG = b""
"""Stands for a line over the limit; compared by identity."""

_KEEPER = Path(__file__).with_name("keeper.py")
_ALLOWED = (
    "PATH",
    "LOGNAME",
    "USER",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
"""What a server inherits of our environment; nothing else, so no key and no secret, unless it is named."""
_CACHES = {
    "XDG_CACHE_HOME": ".cache", "npm_config_cache": ".npm", "UV_CACHE_DIR": ".cache/uv", "PYTHONUSERBASE": ".local",
    "UV_PYTHON_INSTALL_DIR": ".local/share/uv/python", "DENO_DIR": ".cache/deno",
}  # fmt: skip
"""Where npx, uvx and their like keep what they have fetched: yours, though a server's home is its own folder."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program that speaks MCP on standard input and output.

    Args:
        words: the program and its arguments; ``{seed}`` stands for the episode's seed.
        variables: environment variables it gets beside the few that are harmless.
    """

    words: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def seeded(self) -> bool:
        """Whether it must know the seed, so that none can be started before it is."""
        return any("{seed}" in word for word in self.words)

    def for_seed(self, seed: int) -> list[str]:
        """The words for an episode with this seed."""
        return [word.replace("{seed}", str(seed)) for word in self.words]


def checked_command(words: Sequence[str]) -> list[str]:
    """``words`` with whole paths for the files among them, for the server runs in a folder of its own.

    Raises:
        ConfigurationError: there is no such program, or none can be kept on this system.
    """
    if sys.platform == "win32":
        raise ConfigurationError("servers are run as processes on Linux and macOS only")
    if not words:
        raise ConfigurationError("which command? For example: mcpgym wrap python my_server.py")
    if any("\0" in word for word in words):
        raise ConfigurationError("a command cannot have a zero character")
    program = shutil.which(words[0])
    if program is None:
        raise ConfigurationError(f"there is no program {words[0]!r} on PATH; give its whole path")
    made = [os.path.abspath(program)]  # noqa: PTH100 - links stay: a virtual environment's Python is one
    for word in words[1:]:
        is_file = not word.startswith("-") and ("/" in word or "." in word) and Path(word).exists()
        made.append(os.path.abspath(word) if is_file else word)  # noqa: PTH100
    return made


def named_variables(names: Sequence[str]) -> dict[str, str]:
    """The environment variables of these names, as they are here.

    Raises:
        ConfigurationError: one is not set.
    """
    for name in names:
        if name not in os.environ:
            raise ConfigurationError(f"the environment variable {name!r} is not set, so no server can be given it")
    return {name: os.environ[name] for name in names}


class ServerProcess:
    """A running server. Made by :meth:`start`; whoever has it must :meth:`end` it."""

    def __init__(self, process: asyncio.subprocess.Process, control: int, status: int, folder: str) -> None:
        self._process = process
        self._folder = folder
        self._control = control
        self._status = status
        self._told = ""
        self._log = ""
        self.noise = ""
        """The beginning of the first line that was no message."""
        self._logging = asyncio.ensure_future(self._keep_log())

    @classmethod
    async def start(cls, command: Command, seed: int = 0) -> ServerProcess:
        """Start the command under a keeper.

        Raises:
            InfrastructureError: the system does not let us.
        """
        folder = tempfile.mkdtemp(prefix="mcpgym-server-")
        control, ours = os.pipe()
        status, theirs = os.pipe()
        words = [sys.executable, "-I", "-S", str(_KEEPER), str(control), str(theirs), folder, *command.for_seed(seed)]
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=_environment(folder, command.variables),
                pass_fds=(control, theirs),
                start_new_session=True,
            )
        except BaseException as error:
            os.close(ours)
            os.close(status)
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, (OSError, ValueError)):
                raise InfrastructureError(f"no process could be started: {error}") from error
            raise
        finally:
            os.close(control)
            os.close(theirs)
        os.set_blocking(status, False)
        return cls(process, ours, status, folder)

    @property
    def gone(self) -> bool:
        """Whether it has ended."""
        return self._process.returncode is not None

    def tail(self) -> str:
        """How it ended and what it said last, for the end of a message."""
        self._hear()
        parts = [f"it {self._told}"] if self._told else []
        if self.noise:
            parts.append(f"it wrote what is no message of MCP: {self.noise!r}")
        if log := self._log.strip():
            parts.append(f"the end of its log:\n{log}")
        return f" ({'; '.join(parts)})" if parts else ""

    def _hear(self) -> None:
        if self._status >= 0 and not self._told:
            with contextlib.suppress(OSError):
                self._told = os.read(self._status, 4096).decode("utf-8", "replace")

    async def _keep_log(self) -> None:
        assert self._process.stderr is not None
        while part := await self._process.stderr.read(CHUNK):
            self._log = (self._log + part[-4 * KEPT_LOG :].decode("utf-8", "replace"))[-KEPT_LOG:]

    async def lines(self) -> AsyncIterator[bytes]:
        """What it writes, line by line; ``TOO_LONG`` for a line over ``MAX_LINE``, once it has ended."""
        assert self._process.stdout is not None
        parts: list[bytes] = []
        size = 0
        while chunk := await self._process.stdout.read(CHUNK):
            *whole, rest = chunk.split(b"\n")
            for end in whole:
                yield b"".join([*parts, end]) if size + len(end) <= MAX_LINE else TOO_LONG
                parts, size = [], 0
            size += len(rest)
            if size <= MAX_LINE:
                parts.append(rest)
            else:
                parts = []
        await asyncio.sleep(0)

    async def write(self, line: bytes) -> None:
        """Send one line.

        Raises:
            OSError: it reads no more.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        await self._process.stdin.drain()

    async def ended_by_itself(self, seconds: float) -> bool:
        """Wait for its end, for so long; whether it came."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        return self.gone

    async def end(self) -> None:
        """Close its input, wait a while, kill it with all that it has started; its folder goes too."""
        if self._control < 0:
            return
        control, self._control = self._control, -1
        draining: asyncio.Future[None] | None = None
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
            draining = asyncio.ensure_future(self._drain())
            await self.ended_by_itself(EXIT_SECONDS)
        finally:
            os.close(control)
            try:
                if not await self.ended_by_itself(KILL_SECONDS):
                    self._process.kill()
                    await self._process.wait()
            finally:
                self._hear()
                os.close(self._status)
                self._status = -1
                for task in (self._logging, draining):
                    if task is not None:
                        task.cancel()
                transport = getattr(self._process, "_transport", None)
                if transport is not None:  # else it is closed, with a warning, when it is collected
                    transport.close()
                await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)  # where its keeper was killed

    async def _drain(self) -> None:
        """What it still writes, thrown away: one that waits for a reader does not come to its end."""
        assert self._process.stdout is not None
        with contextlib.suppress(RuntimeError):  # the transport reads still
            while await self._process.stdout.read(CHUNK):
                pass


def _environment(folder: str, variables: Mapping[str, str]) -> dict[str, str]:
    home = Path.home()
    caches = {name: os.environ.get(name, str(home / place)) for name, place in _CACHES.items()}
    allowed = {name: os.environ[name] for name in _ALLOWED if name in os.environ}
    return {**allowed, **caches, "HOME": folder, "TMPDIR": folder, **variables}
