"""What an episode remembers: its problem, its session in the sandbox, what was done in it, and what was submitted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mcpgym_environments.python_sandbox.problems.problem import Problem
    from mcpgym_environments.python_sandbox.sessions.pool import Pool
    from mcpgym_environments.python_sandbox.sessions.session import Session


class InSandbox(Protocol):
    """What the state of an episode with a session in the sandbox has."""

    session: Session | None
    faults: int
    """Runs that did not end well, and calls that could not be made."""
    closed: bool
    """Whether the episode has ended."""


@dataclass(slots=True, eq=False)
class Work:
    """One episode. ``problem`` is None where somebody works on what they like.

    ``seed`` makes the hidden tests. It is not what the session's generators begin with, ``session_seed``, which depends
    on the task alone: code can read its generators' state, and an episode's seed is easily guessed from little.

    ``session`` is None until the first tool needs one, and again once the solution was graded. ``steps`` counts runs,
    writes, reads and listings, also those that came to nothing; ``faults`` counts the runs that did not end well and
    the calls that could not be done. ``submitted`` is None until a solution was handed in; ``share`` is how much of it
    is right, 0 to 1, and None while nobody has looked. ``closed`` is set when the episode has ended.
    """

    problem: Problem | None
    pool: Pool
    seed: int
    session_seed: int
    session: Session | None = None
    steps: int = 0
    faults: int = 0
    submitted: str | None = None
    share: float | None = None
    closed: bool = False
