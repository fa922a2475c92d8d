"""Functions to be written: two implementations of each agree, a mistake costs, and nothing cheap is paid."""

from __future__ import annotations

import json
import re
import time
from collections import Counter

import pytest
from sandbox_functions import alone, function_of, made, remembering, share

from mcpgym_environments.python_sandbox.problems.function import GENERATORS
from mcpgym_environments.python_sandbox.problems.problem import LEVELS, Generator
from mcpgym_environments.python_sandbox.problems.testing import TESTS, key

EVERY = [pytest.param(generator, level, id=f"{generator.name}-{level}") for generator in GENERATORS for level in LEVELS]


def test_there_are_enough_and_each_has_every_level() -> None:
    assert len(GENERATORS) >= 7
    assert len({generator.name for generator in GENERATORS}) == len(GENERATORS)
    assert all(generator.family == "function" and list(generator.levels) == list(LEVELS) for generator in GENERATORS)


@pytest.mark.parametrize(("generator", "level"), EVERY)
def test_an_independent_solution_agrees_with_the_reference_and_a_mistake_does_not(
    generator: Generator, level: int
) -> None:
    for problem, right, wrong in alone(generator, level, range(2)):
        assert right == 1, problem.text
        assert wrong < 1, problem.text


@pytest.mark.slow
@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.name)
def test_more_solutions_agree(generator: Generator) -> None:
    for level in LEVELS:
        scores = alone(generator, level, range(2, 6))
        assert all(right == 1 for _, right, _ in scores)
        assert all(wrong < 1 for _, _, wrong in scores)
        assert any(wrong > 0 for _, _, wrong in scores), "a plausible mistake has its share of the credit"


@pytest.mark.parametrize(("generator", "level"), EVERY)
def test_the_tests_are_made_anew_for_each_episode_and_differ_from_what_is_shown(
    generator: Generator, level: int
) -> None:
    problem = made(generator, level)
    assert problem.tests is not None
    cases = problem.tests.cases(1)
    inputs = [key(case.arguments) for case in cases]
    assert len(set(inputs)) == len(inputs) == TESTS >= 12
    assert list(map(tuple, cases)) == list(map(tuple, problem.tests.cases(1)))
    other = {key(case.arguments) for case in problem.tests.cases(2)}
    assert len(other - set(inputs)) >= 4
    for case in cases:
        json.dumps([case.arguments, case.expected], allow_nan=False)
        assert not case.kept
    most_alike = Counter(key(case.expected) for case in cases).most_common(1)[0][1]
    assert most_alike == 1, "a constant passes one test"
    echoes = Counter(place for case in cases for place, given in enumerate(case.arguments) if given == case.expected)
    assert max(echoes.values(), default=0) <= 1, "and so does giving an argument back"


@pytest.mark.parametrize(("generator", "level"), EVERY)
def test_what_knows_only_the_examples_is_paid_nothing_and_so_is_what_does_nothing(
    generator: Generator, level: int
) -> None:
    problem = made(generator, level)
    assert share(problem, remembering(problem, lambda *arguments: ...), 5) == 0
    assert share(problem, lambda *arguments: arguments[0], 5) <= 0.25
    assert share(problem, lambda *arguments: None, 5) <= 0.2


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.name)
@pytest.mark.flaky(reruns=1)  # it measures time
def test_problems_are_pure_quick_and_different(generator: Generator) -> None:
    for level in LEVELS:
        started = time.process_time()
        problems = [made(generator, level, seed) for seed in range(4)]
        assert (time.process_time() - started) / 4 < 1.0  # 20 ms, where nobody else is at work
        again = made(generator, level, 3)
        assert (again.text, again.solution, again.wrong) == (problems[3].text, problems[3].solution, problems[3].wrong)
        assert len({problem.identity for problem in problems}) == len({problem.text for problem in problems}) == 4
        for problem in problems:
            assert problem.tests is not None
            assert (problem.generator, problem.family, problem.level) == (generator.name, "function", level)
            assert len(problem.text) < 6_000
            assert not problem.files
            started = time.process_time()
            problem.tests.cases(0)
            assert time.process_time() - started < 1.0
            signature = f"{problem.tests.function}({', '.join(problem.tests.parameters)})"
            assert signature in problem.text
            assert all(f"- {name}: " in problem.text for name in problem.tests.parameters)


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda generator: generator.name)
def test_the_specifications_differ_not_only_the_examples(generator: Generator) -> None:
    """The text without its examples and without the function's name differs from seed to seed."""
    for level in LEVELS:
        rules = set()
        for seed in range(12):
            problem = made(generator, level, seed)
            assert problem.tests is not None
            before = problem.text.partition("\n\nExamples:")[0].replace(problem.tests.function, "f")
            rules.add(re.sub(r"\s+", " ", before))
        assert len(rules) >= 4, (level, rules)


def test_the_examples_of_the_text_are_right() -> None:
    for generator in GENERATORS:
        problem = made(generator, 3, "examples")
        assert problem.tests is not None
        right = function_of(problem, problem.solution)
        lines = [line for line in problem.text.splitlines() if line.startswith(problem.tests.function + "(")]
        assert len(lines) == 2
        for line in lines:
            call, _, result = line.partition(" returns ")
            assert eval(call, {problem.tests.function: right}) == eval(result)
