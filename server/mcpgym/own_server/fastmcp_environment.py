"""An environment over a server in this process: FastMCP's, or the official SDK's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from mcpgym.environment import ConfigT
from mcpgym.errors import ConfigurationError
from mcpgym.own_server import factories
from mcpgym.own_server.connection import Connection
from mcpgym.own_server.environment import OwnServerEnvironment, ServerEpisode
from mcpgym.tasks import Task

FORGET_AFTER = 50
"""Episodes after which the functions of ended servers are let go."""


class FastMCPEnvironment(OwnServerEnvironment[ConfigT]):
    """An environment over a FastMCP server, or one of the official SDK (``MCPServer``, low-level ``Server``).

    Give it a ``factory`` that makes one server for each episode, ``name``, ``tasks`` and rewards, whose parameter is
    the :class:`~mcpgym.own_server.environment.ServerEpisode`. The factory gets what it asks for by the names of its
    parameters: ``seed``, ``task``, ``config``. It may be ``async``, and may return a state for the rewards beside the
    server: ``return server, notes``.
    """

    factory: ClassVar[Callable[..., Any] | None] = None
    _closed = 0

    @property
    def brought(self) -> str:
        """The factory's name."""
        factory = self._factory()
        return f"{getattr(factory, '__module__', '?')}:{getattr(factory, '__qualname__', type(factory).__name__)}"

    def _factory(self) -> Any:
        written = inspect.getattr_static(type(self), "factory")
        if isinstance(written, staticmethod):
            written = written.__func__
        elif isinstance(written, classmethod):
            written = type(self).factory
        where = f"{type(self).__name__}.factory"
        if written is None:
            raise ConfigurationError(f"{where} is missing; {factories.HOW}")
        checked = factories.checked_factory(written, where)
        if inspect.isfunction(checked) and next(iter(inspect.signature(checked).parameters), "") == "self":
            return checked.__get__(self)
        return checked

    async def begin(self, task: Task, seed: int) -> tuple[Connection, Any, Any]:
        """A server that the factory makes, in this process."""
        made = await factories.make(self._factory(), self.brought, self.offered(task, seed))
        connection = Connection(factories.opener(made.server), f"the server that {self.brought} made")
        await connection.open(self.start_seconds)
        return connection, made.server, made.state

    async def close(self, state: ServerEpisode) -> None:
        """End the episode's server; now and then, let go of what FastMCP keeps of those that have ended."""
        await super().close(state)
        self._closed += 1
        if self._closed % FORGET_AFTER == 0:
            factories.forget_functions()

    async def shutdown(self) -> None:
        """Let go of what FastMCP keeps."""
        factories.forget_functions()

    async def first(self) -> Connection:
        """As any; and the factory is asked once more, to see that it makes another."""
        task = self.any_task()
        connection, server, _ = await self.begin(task, 0)
        try:
            await factories.make(self._factory(), self.brought, self.offered(task, 0))
        except BaseException:
            await connection.close()
            raise
        del server
        return connection
