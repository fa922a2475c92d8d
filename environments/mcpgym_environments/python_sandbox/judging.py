"""How much of a submitted solution is right; nothing of what is found here is ever shown to a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpgym import ToolError
from mcpgym_environments.python_sandbox.observation import SOLUTION, size
from mcpgym_environments.python_sandbox.workspace import opened

if TYPE_CHECKING:
    from mcpgym_environments.python_sandbox.problems.problem import Problem
    from mcpgym_environments.python_sandbox.sessions.session import Session
    from mcpgym_environments.python_sandbox.state import Work

LONGEST_SOLUTION = 1_000_000
"""Bytes of a solution.py that is graded."""


async def share_of_answer(problem: Problem, answer: str) -> float:
    """1 if ``answer`` is right, else 0.

    Raises:
        ToolError: it is empty.
    """
    from mcpgym_environments.python_sandbox.problems.formulas import judge_formula

    if not answer.strip():
        raise ToolError("an empty answer cannot be submitted; say what you found, as in answer=42")
    assert problem.answer is not None
    return float((await judge_formula(problem.answer, answer)).correct)


async def share_of_code(work: Work) -> float:
    """The share of the hidden tests that the workspace's ``solution.py`` passes.

    Raises:
        ToolError: there is no such file, or it is too long.
        SessionLost: a session is gone.
    """
    from mcpgym_environments.python_sandbox.problems.grading import grade

    assert work.problem is not None
    return (await grade(work.problem, work.pool, await _solution(await opened(work)), work.seed)).score


async def _solution(session: Session) -> bytes:
    from mcpgym_environments.python_sandbox.sessions.session import FileFault

    try:
        source, rest = await session.read_part(SOLUTION, 0, LONGEST_SOLUTION)
    except FileFault as fault:
        raise ToolError(f"this task is graded on {SOLUTION} in the workspace: {fault}; write it, then submit") from None
    if rest:
        raise ToolError(f"{SOLUTION} has {size(len(source) + rest)}; at most {LONGEST_SOLUTION:,} are graded")
    return source
