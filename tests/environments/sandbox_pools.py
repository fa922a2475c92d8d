"""Pools of sessions over a named back-end, for the programs that run in cells."""

from __future__ import annotations

from typing import Any


def make_pool(backend: str, *, ready: int = 2, executing: int = 32, packages: tuple[str, ...] = ()) -> Any:
    """A pool over one back-end, however weak."""
    from mcpgym_environments.python_sandbox.sessions.backend import SandboxSpec
    from mcpgym_environments.python_sandbox.sessions.choosing import choose
    from mcpgym_environments.python_sandbox.sessions.pool import Pool

    return Pool(choose(backend, "none"), SandboxSpec(packages=packages), ready=ready, executing=executing)
