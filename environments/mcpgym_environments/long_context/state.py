"""What an episode remembers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpgym_environments.long_context.asking.budget import Budget
    from mcpgym_environments.long_context.made.plan import Plan
    from mcpgym_environments.python_sandbox.problems.answers import Answer
    from mcpgym_environments.python_sandbox.sessions.pool import Pool
    from mcpgym_environments.python_sandbox.sessions.session import Session


@dataclass(slots=True, eq=False)
class Reading:
    """One episode.

    ``budget`` is None where code may ask nobody. ``session`` is None until the first run, and again once an answer was
    submitted; ``loaded`` says whether its variable ``context`` is there. The text itself is kept nowhere but in the
    sandbox: ``answer`` is what remains of having made it, and None before. ``faults`` counts runs that did not end well
    and calls that could not be made. ``submitted`` is None until an answer was; ``right`` says of it.
    """

    plan: Plan
    pool: Pool
    budget: Budget | None
    session_seed: int
    session: Session | None = None
    loaded: bool = False
    answer: Answer | None = None
    runs: int = 0
    faults: int = 0
    submitted: str | None = None
    right: bool = False
    closed: bool = False
