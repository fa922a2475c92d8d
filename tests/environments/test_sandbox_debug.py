"""Broken programs: what was seen is what they do, the right program repairs them, and leaving them is paid nothing."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable
from typing import Any

import pytest
from sandbox_functions import alone, function_of, made, remembering, share

from mcpgym_environments.python_sandbox.problems.debug import GENERATORS
from mcpgym_environments.python_sandbox.problems.debug.making import FAILING, FILE
from mcpgym_environments.python_sandbox.problems.problem import LEVELS, Generator, Problem
from mcpgym_environments.python_sandbox.problems.testing import key

EVERY = [pytest.param(generator, level, id=f"{generator.name}-{level}") for generator in GENERATORS for level in LEVELS]


def left_alone(problem: Problem) -> Callable[..., Any]:
    """The broken program as the policy finds it."""
    return function_of(problem, problem.files[FILE].decode())


def test_there_are_enough_and_each_has_every_level() -> None:
    assert len(GENERATORS) >= 5
    assert len({generator.name for generator in GENERATORS}) == len(GENERATORS)
    assert all(generator.family == "debug" and list(generator.levels) == list(LEVELS) for generator in GENERATORS)


@pytest.mark.parametrize(("generator", "level"), EVERY)
def test_the_right_program_repairs_it_half_a_repair_does_not_and_none_is_paid_nothing(
    generator: Generator, level: int
) -> None:
    for problem, right, wrong in alone(generator, level, range(2)):
        assert right == 1, problem.text
        assert wrong < 1, problem.text
        assert share(problem, left_alone(problem), 7) == 0
        assert share(problem, remembering(problem, left_alone(problem)), 7) == 0, "the examples are not the fix"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.name)
def test_more_of_them_end_and_can_be_repaired(generator: Generator) -> None:
    half = []
    for level in LEVELS:
        scores = alone(generator, level, range(2, 5))
        assert all(right == 1 for _, right, _ in scores)
        assert all(wrong < 1 for _, _, wrong in scores)
        half += [wrong for _, _, wrong in scores]
    assert any(0 < wrong < 1 for wrong in half), "a repair of one mistake of several has its share of the credit"


@pytest.mark.parametrize(("generator", "level"), EVERY)
def test_the_tests_are_what_failed_and_some_of_what_must_go_on_working(generator: Generator, level: int) -> None:
    problem = made(generator, level)
    assert problem.tests is not None
    cases = problem.tests.cases(1)
    assert sum(not case.kept for case in cases) == FAILING >= 12
    assert len({key(case.arguments) for case in cases}) == len(cases)
    assert list(map(tuple, cases)) == list(map(tuple, problem.tests.cases(1)))
    assert {key(case.arguments) for case in problem.tests.cases(2)} != {key(case.arguments) for case in cases}


def test_breaking_what_worked_costs() -> None:
    costly = 0
    for generator in GENERATORS:
        problem = made(generator, 1)
        assert problem.tests is not None
        right = function_of(problem, problem.solution)
        kept = {key(case.arguments) for case in problem.tests.cases(3) if case.kept}
        spoilt = share(problem, lambda *a, right=right, kept=kept: None if key(a) in kept else right(*a), 3)
        assert spoilt == (0 if kept else 1)
        costly += bool(kept)
    assert costly >= 4


@pytest.mark.parametrize(("generator", "level"), EVERY)
def test_the_text_shows_what_the_program_really_does_and_check_py_repeats_it(generator: Generator, level: int) -> None:
    problem = made(generator, level, "seen")
    assert problem.tests is not None
    name, broken = problem.tests.function, left_alone(problem)
    right = function_of(problem, problem.solution)
    lines = problem.text.splitlines()
    calls = [place for place, line in enumerate(lines) if line.startswith(f"{name}(") and line.endswith(")")]
    assert len(calls) >= 1
    for place in calls:
        wanted = next(line for line in lines[place:] if line.startswith("and should return "))
        assert eval(lines[place], {name: right}) == eval(wanted.removeprefix("and should return "))
        if lines[place + 1] == "fails:":
            assert lines[place + 2].strip().startswith(f"{FILE}, line ")
            last = lines[lines.index(wanted, place) - 1].strip()
            with pytest.raises(Exception) as caught:  # noqa: PT011
                eval(lines[place], {name: broken})
            assert last == f"{type(caught.value).__name__}: {caught.value}"
        else:
            seen = eval(lines[place + 1].removeprefix("returns "))
            assert eval(lines[place], {name: broken}) == seen != eval(wanted.removeprefix("and should return "))


def test_check_py_says_wrong_of_the_broken_program_and_right_of_the_right_one(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for generator in GENERATORS:
        problem = made(generator, 1, "wrong value")
        for source, word in ((problem.solution, "right"), (problem.files[FILE].decode(), "WRONG")):
            (tmp_path / FILE).write_text(source)
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.suppress(Exception):
                exec(problem.files["check.py"].decode(), {})
            said = {line.split()[0] for line in out.getvalue().splitlines()}
            assert said <= {word}
            assert said or word == "WRONG"


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.name)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_problems_are_pure_quick_and_different(generator: Generator) -> None:
    for level in LEVELS:
        started = time.process_time()
        problems = [made(generator, level, seed) for seed in range(3)]
        assert (time.process_time() - started) / 3 < 1.0  # 20 ms, where nobody else is at work
        again = made(generator, level, 2)
        assert (again.text, again.files, again.wrong) == (problems[2].text, problems[2].files, problems[2].wrong)
        assert len({problem.identity for problem in problems}) == len({problem.text for problem in problems}) == 3
        for problem in problems:
            assert problem.tests is not None
            assert problem.solution.encode() != problem.files[FILE]
            assert len(problem.text) < 8_000
            for content in problem.files.values():
                assert problem.solution.encode() not in content
