"""Sessions for the tests of the agent: in namespaces. Where there are none, code that can do no harm runs without.

Code that could harm a machine that lets it asks for ``INSIDE`` and is skipped elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TypeVar

import pytest

from mcpgym_environments.python_sandbox.sessions.backend import SandboxLimits, SandboxSpec, Unavailable
from mcpgym_environments.python_sandbox.sessions.choosing import choose
from mcpgym_environments.python_sandbox.sessions.pool import Pool
from mcpgym_environments.python_sandbox.sessions.session import Outcome, Session

T = TypeVar("T")

LIMITS = SandboxLimits(
    seconds=20,
    cpu_seconds=20,
    memory=160 * 2**20,
    address_space=2**30,
    processes=16,
    file_bytes=2**23,
    workspace_bytes=2**24,
    workspace_files=512,
    output_bytes=4096,
    read_bytes=2**16,
)
"""Small, so that coming up to them is quick; the seconds are for busy machines, and tests of them say their own."""
INSIDE = "namespaces"
OUTSIDE = "unsafe-local"
BOTH = pytest.mark.parametrize("backend", [INSIDE, OUTSIDE])


@cache
def pool(backend: str = INSIDE, packages: tuple[str, ...] = ()) -> Pool:
    """The pool of a back-end, one for all tests of this process; it ends with the interpreter."""
    return Pool(choose(backend, "none"), SandboxSpec(LIMITS, packages), ready=1)


@cache
def missing(backend: str) -> str:
    """Why there is no such back-end here; empty if there is."""
    try:
        asyncio.run(pool(backend).start())
    except Unavailable as error:
        return str(error)
    return ""


def with_session(
    act: Callable[[Session], Awaitable[T]],
    backend: str = "",
    *,
    seed: int = 0,
    packages: tuple[str, ...] = (),
) -> T:
    """What ``act`` gives, done with a fresh session; the test is skipped where there can be none.

    Args:
        act: what to do.
        backend: where; by default in namespaces, else without a boundary: for code that can do no harm.
        seed: of the session.
        packages: of the session.
    """
    backend = backend or (OUTSIDE if missing(INSIDE) else INSIDE)
    if why := missing(backend):
        pytest.skip(why)

    async def do() -> T:
        session = await pool(backend, packages).open(seed)
        try:
            return await act(session)
        finally:
            session.kill()

    return asyncio.run(do())


def run(*cells: str, backend: str = "", seconds: float | None = None, seed: int = 0) -> list[Outcome]:
    """How some cells end, one after another in one session."""

    async def act(session: Session) -> list[Outcome]:
        return [await session.run(cell, seconds) for cell in cells]

    return with_session(act, backend, seed=seed)


def shown(*cells: str, backend: str = "") -> str:
    """What the last of some cells shows; the ones before must end well."""
    outcomes = run(*cells, backend=backend)
    for outcome in outcomes[:-1]:
        assert outcome.status == "ok", outcome.output.decode()
    return outcomes[-1].output.decode()
