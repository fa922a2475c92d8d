"""An environment over any program that speaks MCP on standard input and output: one process for each episode."""

from __future__ import annotations

import shlex
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mcpgym.environment import ConfigT
from mcpgym.own_server.connection import Connection
from mcpgym.own_server.environment import OwnServerEnvironment
from mcpgym.own_server.pool import Pool
from mcpgym.own_server.processes import Command, checked_command, named_variables
from mcpgym.own_server.transport import Holder, opener
from mcpgym.tasks import Task


class StdioEnvironment(OwnServerEnvironment[ConfigT]):
    """Give it a ``command``, ``name``, ``tasks`` and rewards, whose parameter is the
    :class:`~mcpgym.own_server.environment.ServerEpisode`; they look at the server by asking it.

    A process has a folder of its own, which is where it runs and its home; it inherits no secret, and ends with its
    episode, or with us, together with all that it has started. It is not locked in: it may do what you may.
    """

    command: ClassVar[Sequence[str]] = ()
    """The program and its arguments, as a list of words. ``{seed}`` stands for the episode's seed; one that takes it
    cannot be started before its episode."""
    variables: ClassVar[Mapping[str, str]] = {}
    """Environment variables for it."""
    inherited: ClassVar[Sequence[str]] = ()
    """Names of environment variables that it gets as they are here: a key that it needs."""
    warm: ClassVar[int] = 2
    """How many processes are kept ready for the next episodes."""

    def __init__(self, config: ConfigT | None = None) -> None:
        cls = type(self)
        self._command = Command(
            checked_command(cls.command),
            {**cls.variables, **named_variables(cls.inherited), **self.more_variables(config)},
        )
        super().__init__(config)
        self._pool = Pool(_Starter(self._command, self.brought, self.start_seconds), self.warm)
        weakref.finalize(self, self._pool.forget)

    def more_variables(self, config: ConfigT | None) -> Mapping[str, str]:
        """Environment variables that a configuration names."""
        return {}

    @property
    def brought(self) -> str:
        """The command, as it would be typed."""
        return shlex.join(type(self).command)[:200]

    async def begin(self, task: Task, seed: int) -> tuple[Connection, Any, Any]:
        """A process from the pool, or one that is started now."""
        start = None
        if self._command.seeded:
            start = _Starter(self._command, self.brought, self.start_seconds, seed)
        return await self._pool.take(start), None, None

    async def first(self) -> Connection:
        """A process that is only looked at."""
        return await _Starter(self._command, self.brought, self.start_seconds)()

    async def shutdown(self) -> None:
        """End the processes that wait."""
        await self._pool.aclose()

    def gauges(self) -> Mapping[str, float]:
        """How many processes wait."""
        return {"warm_servers": float(self._pool.ready)}


class _Starter:
    """Starts a process of a command; it holds no environment, so that one can be let go while its pool is filled."""

    def __init__(self, command: Command, what: str, seconds: float, seed: int = 0) -> None:
        self._command, self._what, self._seconds, self._seed = command, what, seconds, seed

    async def __call__(self) -> Connection:
        holder = Holder()
        connection = Connection(opener(self._command, self._seed, holder), self._what, holder.tail, holder.gone)
        await connection.open(self._seconds)
        return connection
