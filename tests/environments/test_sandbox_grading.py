"""Grading: what is asked of a session and in which order, what its ends mean for a score, and how long it may take."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from mcpgym_environments.python_sandbox.problems import grading
from mcpgym_environments.python_sandbox.problems.answers import NumberAnswer
from mcpgym_environments.python_sandbox.problems.grading import Grade, grade
from mcpgym_environments.python_sandbox.problems.problem import Case, FunctionTests, Problem
from mcpgym_environments.python_sandbox.sessions.backend import SessionLost, SessionSpent
from mcpgym_environments.python_sandbox.sessions.session import MISSING, Evaluation, FileFault, Outcome

OK = "ok"


def ended(status: Any = OK, why: str | None = None, fresh: bool = False, milliseconds: int = 1) -> Outcome:
    return Outcome(status, why, b"", fresh, milliseconds, 0, {})


@dataclass
class Scripted:
    """A session whose function is ``answer``: it gives a value, or an outcome, or raises."""

    answer: Callable[[int], Any]
    load: Callable[[], Any] = ended
    done: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[dict[str, float]] = field(default_factory=list)

    async def write(self, path: str, data: bytes) -> None:
        self.done.append("write")
        self.files[path] = data

    async def run(self, code: str, seconds: float, cpu_seconds: float) -> Outcome:
        self.done.append(code)
        outcome = self.load()
        assert isinstance(outcome, Outcome)
        return outcome

    async def evaluate(self, function: str, arguments: Sequence[Any], seconds: float, cpu_seconds: float) -> Evaluation:
        assert function == "double"
        (number,) = arguments
        self.done.append(f"test {number}")
        self.asked.append({"seconds": seconds, "cpu": cpu_seconds})
        value = self.answer(number)
        if isinstance(value, Outcome):
            return Evaluation(value, MISSING)
        return Evaluation(ended(), value)

    def kill(self, why: str) -> None:
        self.done.append("killed")


@dataclass
class Pools:
    sessions: list[Scripted]
    seeds: list[int] = field(default_factory=list)

    async def open(self, seed: int) -> Scripted:
        self.seeds.append(seed)
        return self.sessions[len(self.seeds) - 1]


def double(count: int = 6, kept: int = 0, tolerance: float | None = None) -> Problem:
    cases = [Case((n,), 2 * n, kept=n >= count - kept) for n in range(count)]
    tests = FunctionTests("double", {"n": "an integer"}, lambda seed: cases, tolerance)
    return Problem("doubling", "function", 1, "double", tests=tests)


def graded(problem: Problem, *sessions: Scripted, seed: int = 3) -> Grade:
    pool: Any = Pools(list(sessions))
    return asyncio.run(grade(problem, pool, b"def double(n): return 2 * n", seed))


def test_the_share_of_the_tests_is_the_score_and_the_session_is_ended() -> None:
    session = Scripted(lambda n: 2 * n if n < 4 else None)
    found = graded(double(), session)
    assert (found.score, found.passed, found.total, found.load_failure) == (4 / 6, 4, 6, None)
    assert session.done == ["write", "from solution import double", *[f"test {n}" for n in range(6)], "killed"]
    assert session.files == {"solution.py": b"def double(n): return 2 * n"}
    assert [result.why for result in found.tests] == [""] * 4 + ["None instead of 8", "None instead of 10"]


@pytest.mark.parametrize("wrong", [True, 4.0, "4", [4], None, 5])
def test_a_value_must_be_right_to_its_type(wrong: Any) -> None:
    assert graded(double(3), Scripted(lambda n: wrong if n == 2 else 2 * n)).passed == 2


def test_a_problem_may_have_a_tolerance() -> None:
    assert graded(double(tolerance=1e-6), Scripted(lambda n: 2 * n + 1e-9)).score == 1
    assert graded(double(tolerance=1e-6), Scripted(lambda n: 2 * n + 1e-3)).score == 0


def test_what_must_go_on_working_multiplies() -> None:
    problem = double(6, kept=2)
    assert graded(problem, Scripted(lambda n: 2 * n)).score == 1
    assert graded(problem, Scripted(lambda n: 2 * n if n != 5 else 0)).score == 0.5
    assert graded(problem, Scripted(lambda n: 2 * n if n >= 4 else None)).score == 0
    assert graded(problem, Scripted(lambda n: 2 * n if n < 4 else None)).score == 0


@pytest.mark.parametrize("status", ["error", "timeout", "killed", "crashed"])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_bad_end_fails_that_test_only_and_a_new_worker_loads_again(status: str, fresh: bool) -> None:
    session = Scripted(lambda n: ended(status, "why", fresh) if n == 2 else 2 * n)
    found = graded(double(), session)
    assert [result.passed for result in found.tests] == [True, True, False, True, True, True]
    loads = session.done.count("from solution import double")
    assert loads == session.done.count("write") == (2 if fresh else 1)
    if fresh:
        assert session.done[session.done.index("test 2") + 1] == "write", (
            "the file may have been changed by its own code"
        )


@pytest.mark.parametrize("status", ["error", "timeout", "killed", "crashed"])
def test_what_cannot_be_loaded_is_tried_once_and_scores_nothing(status: str) -> None:
    session = Scripted(lambda n: 2 * n, load=lambda: ended(status, "memory"))
    found = graded(double(), session)
    assert (found.score, found.passed, found.total) == (0, 0, 6)
    assert found.load_failure == f"solution.py cannot be loaded: {status}: memory"
    assert session.done == ["write", "from solution import double", "killed"]


def test_what_cannot_be_loaded_again_fails_the_rest() -> None:
    loads = iter([ended(), ended("error", "gone")])
    found = graded(
        double(), Scripted(lambda n: ended("crashed", "exit 0", True) if n == 2 else 2 * n, lambda: next(loads))
    )
    assert [result.passed for result in found.tests] == [True, True, False, False, False, False]
    assert found.load_failure is None


def test_a_file_that_cannot_be_written_again_fails_the_rest() -> None:
    class Stubborn(Scripted):
        async def write(self, path: str, data: bytes) -> None:
            if self.files:
                raise FileFault("'solution.py' is a folder")
            await super().write(path, data)

    found = graded(double(), Stubborn(lambda n: ended("crashed", "exit 0", True) if n == 2 else 2 * n))
    assert found.passed == 2
    assert "is a folder" in found.tests[-1].why


def test_all_tests_together_are_bounded_by_the_session_s_own_clock() -> None:
    slow = Scripted(lambda n: ended("timeout", "timeout", milliseconds=8_000))
    found = graded(double(40), slow)
    assert len(slow.asked) == 4
    assert [round(each["seconds"], 1) for each in slow.asked] == [8.0, 8.0, 8.0, 6.0]
    assert all(each["cpu"] == 2.0 for each in slow.asked)
    assert found.score == 0
    assert found.tests[-1].why == "all tests together took more than 30 s"
    assert found.total == 40


def test_loading_counts_too() -> None:
    crashing = Scripted(lambda n: ended("crashed", "exit 0", True), load=lambda: ended(milliseconds=7_000))
    graded(double(40), crashing)
    assert crashing.done.count("from solution import double") <= 6


def lost(number: int) -> Any:
    raise SessionLost("the connection ended")


def test_a_lost_session_is_graded_anew_once() -> None:
    first, second = Scripted(lambda n: 2 * n if n < 3 else lost(n)), Scripted(lambda n: 2 * n)
    assert graded(double(), first, second).score == 1
    assert first.done[-1] == second.done[-1] == "killed"
    assert "test 0" in second.done


def test_a_submission_that_takes_the_machines_memory_is_paid_nothing() -> None:
    def spent(number: int) -> Any:
        raise SessionSpent("this machine had no memory left, and it held most")

    only = Scripted(lambda n: 2 * n if n < 3 else spent(n))
    grade = graded(double(), only)
    assert (grade.score, grade.passed, grade.load_failure is None) == (0, 0, False)
    assert only.done[-1] == "killed"


def test_two_lost_sessions_are_no_score() -> None:
    sessions = Scripted(lost), Scripted(lost)
    with pytest.raises(SessionLost):
        graded(double(), *sessions)
    assert all(session.done[-1] == "killed" for session in sessions)


def test_a_grading_that_is_cancelled_ends_its_session() -> None:
    async def run() -> Scripted:
        session = Scripted(lambda n: 2 * n)
        began = asyncio.Event()

        async def wait(*_: Any, **__: Any) -> Any:
            began.set()
            await asyncio.sleep(60)

        session.evaluate = wait  # type: ignore[method-assign]
        pool: Any = Pools([session])
        task = asyncio.create_task(grade(double(), pool, b"", 0))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return session

    assert asyncio.run(run()).done[-1] == "killed"


def test_the_session_s_seed_tells_nothing_of_the_tests_seed() -> None:
    seeds = []
    for seed in (0, 1, 2**63 - 1):
        pool: Any = Pools([Scripted(lambda n: 2 * n)])
        asyncio.run(grade(double(), pool, b"", seed))
        seeds += pool.seeds
    assert len(set(seeds)) == 3
    assert not set(seeds) & {0, 1, 2**63 - 1}
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_problem_with_an_answer_is_not_graded_like_this() -> None:
    problem = Problem("sums", "compute", 1, "1 + 1?", answer=NumberAnswer(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no solution\.py"):
        graded(problem)


def test_the_words_of_a_failure_are_bounded() -> None:
    session = Scripted(lambda n: Outcome("error", "x" * 10_000, b"y" * 10_000, False, 1, 0, {}))
    found = graded(double(), session)
    assert max(len(result.why) for result in found.tests) <= 300
    json.dumps([result.why for result in found.tests])


def test_the_limits_are_what_the_documentation_says() -> None:
    assert (grading.TOTAL_SECONDS, grading.ATTEMPTS) == (30.0, 2)
