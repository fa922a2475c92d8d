"""What environments share whose episodes run code in the sandbox: the pool of sessions, and what is said of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import TypeVar

from mcpgym import Config, Environment, Task
from mcpgym_environments.python_sandbox.config import PythonSandboxConfig
from mcpgym_environments.python_sandbox.same_text import same_text
from mcpgym_environments.python_sandbox.shared import let_go, take
from mcpgym_environments.python_sandbox.state import InSandbox
from mcpgym_environments.python_sandbox.workspace import released

if TYPE_CHECKING:
    from mcpgym import Requirement
    from mcpgym_environments.python_sandbox.sessions.pool import Pool

StateT = TypeVar("StateT", bound=InSandbox)
ConfigT = TypeVar("ConfigT", bound=Config)


class SandboxedEnvironment(Environment[Task, StateT, ConfigT]):
    """Base of environments with a sandbox. The first episode starts it; all of one configuration share it.

    A subclass says in :attr:`sandbox` how it is configured, and takes sessions from :meth:`started`.
    """

    reproducible: ClassVar[bool] = False

    def __init__(self, config: ConfigT | None = None) -> None:
        super().__init__(config)
        self._pool: Pool | None = None
        self._facts: Mapping[str, Any] = {}

    @property
    def sandbox(self) -> PythonSandboxConfig:
        """The sandbox's part of the configuration."""
        raise NotImplementedError(f"{type(self).__name__} must say how its sandbox is configured")

    async def started(self) -> Pool:
        """The pool of sessions, which all environments of this configuration share.

        Raises:
            Unavailable: nothing that is strong enough can keep code in on this machine.
        """
        if self._pool is None:
            pool = await asyncio.to_thread(take, self.sandbox, self)
            self._facts = await pool.start()
            self._pool = pool
        return self._pool

    def invalid_arguments(self, state: StateT, tool: str, problem: str) -> str:
        """Arguments that do not fit cost no step, but are a failed call."""
        state.faults += 1
        return problem

    def same_observation(self, recorded: str, replayed: str) -> bool:
        """The same but for addresses, times and durations, which code may print."""
        return same_text(recorded, replayed)

    def conditions(self) -> Mapping[str, Any]:
        """What keeps the code in, and the versions that it finds."""
        return self._facts

    @classmethod
    def requirements(cls) -> Sequence[Requirement]:
        """What this machine has to keep code in, found by trying."""
        from mcpgym_environments.python_sandbox.sessions.requirements import requirements

        return requirements()

    def gauges(self) -> Mapping[str, float]:
        """What the pool of sessions does now."""
        return {} if self._pool is None else self._pool.gauges()

    async def close(self, state: StateT) -> None:
        """End the episode's session."""
        state.closed = True
        released(state)

    async def shutdown(self) -> None:
        """Let go of the sandbox; it ends when no environment of its kind has it any more."""
        self._pool = None
        await let_go(self.sandbox, self)
