"""Grading: a submitted ``solution.py`` is called with hidden inputs in a fresh session, and judged here in the server.

The session has nothing of the one in which the solution was written: no file but ``solution.py``, no process, no
variable, another seed. Into it go the source and, one call at a time, the arguments; out of it comes JSON of exact
types, and nothing else of what happens there counts: not what is printed, not how the process ends. The right values,
the trusted implementation and the comparison stay in the server. So a submission can learn its inputs, and it can end
its own session; it cannot learn or change what is right.

How long it may take: each call has a limit of CPU time, and a generous one of wall time; all calls together, loading
included, have :data:`TOTAL_SECONDS`, by the clock of the session, in which waiting for a turn does not count. After
that the remaining tests have failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcpgym import derive_seed
from mcpgym_environments.python_sandbox.problems.same import difference
from mcpgym_environments.python_sandbox.sessions.backend import MAX_SEED, SessionLost, SessionSpent
from mcpgym_environments.python_sandbox.sessions.session import FileFault, Session

if TYPE_CHECKING:
    from mcpgym_environments.python_sandbox.problems.problem import Case, FunctionTests, Problem
    from mcpgym_environments.python_sandbox.sessions.pool import Pool
    from mcpgym_environments.python_sandbox.sessions.session import Outcome

FILE = "solution.py"
"""The file that is graded."""

TOTAL_SECONDS = 30.0
"""How long all calls of one grading may take together."""

LOAD_SECONDS = 5.0
"""CPU time that loading the solution may take."""

ATTEMPTS = 2
"""How often a grading is begun when its session is lost; after that the loss is reported."""

_LONGEST_WHY = 300


@dataclass(frozen=True, slots=True)
class TestResult:
    """How one hidden test went. Nothing of it is for the policy."""

    passed: bool
    kept: bool
    why: str
    """Why it failed; empty where it passed."""
    milliseconds: int


@dataclass(frozen=True, slots=True)
class Grade:
    """The result of a grading: ``score`` is 0 to 1, and the rest is hidden from the policy."""

    score: float
    passed: int
    total: int
    tests: tuple[TestResult, ...]
    load_failure: str | None = None
    """Why the solution could not be loaded at all, where it could not."""


async def grade(problem: Problem, pool: Pool, submission: bytes, seed: int) -> Grade:
    """Grade ``submission``, the bytes of a ``solution.py``, with the tests that ``problem`` has for ``seed``.

    The score is the share of the tests that pass; where the problem has tests of what must go on working (``kept``),
    it is the share of the others, times the share of those.

    Args:
        problem: a problem with tests.
        pool: opens the session for it.
        submission: what the policy left; any bytes.
        seed: the episode's. The session's own seed is derived from it and tells nothing of the tests.

    Raises:
        SessionLost: sessions were lost, twice: the machine's fault or a submission's, and nothing is known about it.
            (Where it is known to be the submission's, which took all memory of the machine, the score is 0.)
        ValueError: the problem has no tests.
    """
    tests = problem.tests
    if tests is None:
        raise ValueError(f"{problem.generator}: a problem with an answer has no solution.py to grade")
    cases = await asyncio.to_thread(tests.cases, seed)
    for attempt in range(ATTEMPTS):
        session = None
        try:
            session = await pool.open(derive_seed("grading session", seed) & MAX_SEED)
            return await _Grading(session, tests, submission).grade(cases)
        except SessionSpent:
            return Grade(0.0, 0, len(cases), (), "it took so much memory that this machine had none left")
        except SessionLost:
            if attempt + 1 == ATTEMPTS:
                raise
        finally:
            if session is not None:
                session.kill("its grading has ended")
    raise AssertionError("unreachable")


class _Grading:
    """One session, one submission, its tests."""

    def __init__(self, session: Session, tests: FunctionTests, submission: bytes) -> None:
        self._session = session
        self._tests = tests
        self._submission = submission
        self._left = TOTAL_SECONDS
        self._wall = 3 * tests.cpu_seconds + 2

    async def grade(self, cases: Sequence[Case]) -> Grade:
        failure = first_failure = await self._load()
        results = []
        for case in cases:
            if failure is None and self._left <= 0:
                failure = f"all tests together took more than {TOTAL_SECONDS:g} s"
            if failure is not None:
                results.append(TestResult(False, case.kept, failure, 0))
                continue
            result, fresh = await self._test(case)
            results.append(result)
            if fresh:  # its worker is gone, with all variables
                failure = await self._load()
        passed = sum(result.passed for result in results)
        return Grade(_score(results), passed, len(results), tuple(results), first_failure)

    async def _test(self, case: Case) -> tuple[TestResult, bool]:
        """The result of a test, and whether the solution must be loaded again."""
        evaluation = await self._session.evaluate(
            self._tests.function,
            list(case.arguments),
            seconds=min(self._wall, max(self._left, 0.1)),
            cpu_seconds=self._tests.cpu_seconds,
        )
        outcome = evaluation.outcome
        self._spend(outcome)
        if outcome.status == "ok":
            why = difference(case.expected, evaluation.value, self._tests.tolerance) or ""
        else:
            why = _why(outcome)
        return TestResult(outcome.status == "ok" and not why, case.kept, why, outcome.milliseconds), outcome.fresh

    async def _load(self) -> str | None:
        """Load the solution as the module that it is; why that failed, if it did.

        It is written again each time: a submission may have changed its own file.
        """
        try:
            await self._session.write(FILE, self._submission)
        except FileFault as fault:
            return f"{FILE} cannot be written: {fault}"
        name = self._tests.function
        outcome = await self._session.run(
            f"from solution import {name}",
            seconds=min(3 * LOAD_SECONDS, max(self._left, 0.1)),
            cpu_seconds=LOAD_SECONDS,
        )
        self._spend(outcome)
        return None if outcome.status == "ok" else f"{FILE} cannot be loaded: {_why(outcome)}"

    def _spend(self, outcome: Outcome) -> None:
        self._left -= outcome.milliseconds / 1000


def _score(results: Sequence[TestResult]) -> float:
    earning = [result.passed for result in results if not result.kept]
    kept = [result.passed for result in results if result.kept]
    return sum(earning) / len(earning) * (sum(kept) / len(kept) if kept else 1.0)


def _why(outcome: Outcome) -> str:
    last = outcome.output.decode("utf-8", "backslashreplace").strip().rpartition("\n")[2]
    return ": ".join(part for part in (outcome.status, outcome.why or "", last) if part)[:_LONGEST_WHY]
