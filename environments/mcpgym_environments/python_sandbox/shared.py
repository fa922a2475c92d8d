"""Pools of sessions that all environments of one process and one specification share.

A pool has a process with the packages loaded, which takes up to a second to start; an environment is often made many
times under one configuration (by a check, by a test). A pool is closed when the last environment that took it lets go.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcpgym_environments.python_sandbox.config import PythonSandboxConfig
from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec

if TYPE_CHECKING:
    from mcpgym_environments.python_sandbox.sessions.pool import Pool

Key = tuple[str, str, str, SandboxSpec]


@dataclass(slots=True)
class _Shared:
    pool: Pool
    holders: weakref.WeakSet[object] = field(default_factory=weakref.WeakSet)


_pools: dict[Key, _Shared] = {}
_lock = threading.Lock()


def key_of(config: PythonSandboxConfig) -> Key:
    """What must be the same for two configurations to share a pool."""
    return config.backend, config.min_isolation, config.image, SandboxSpec(config.limits, config.package_names)


def take(config: PythonSandboxConfig, holder: object) -> Pool:
    """The pool of ``config``, made if nobody has it; it stays until ``holder`` and all others let go of it.

    Raises:
        Unavailable: no back-end that is strong enough can run here.
    """
    from mcpgym_environments.python_sandbox.sessions.choosing import choose
    from mcpgym_environments.python_sandbox.sessions.pool import Pool

    key = key_of(config)
    with _lock:
        shared = _pools.get(key)
        if shared is None:
            shared = _pools[key] = _Shared(
                Pool(choose(config.backend, config.min_isolation, image=config.image), key[3])
            )
        shared.holders.add(holder)
        return shared.pool


async def let_go(config: PythonSandboxConfig, holder: object) -> None:
    """Close the pool of ``config`` unless others than ``holder`` have it too."""
    key = key_of(config)
    with _lock:
        shared = _pools.get(key)
        if shared is None:
            return
        shared.holders.discard(holder)
        if shared.holders:
            return
        del _pools[key]
    await shared.pool.close()
