"""Problems with hidden tests, judged here in this process: for sources of our own only."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

from mcpgym_environments.python_sandbox.problems.problem import Generator, Problem
from mcpgym_environments.python_sandbox.problems.same import same


def made(generator: Generator, level: int, seed: object = 0) -> Problem:
    return generator.make(Random(f"{generator.name} {level} {seed}"), level)


def function_of(problem: Problem, source: str) -> Callable[..., Any]:
    assert problem.tests is not None
    namespace: dict[str, Any] = {"__name__": "solution"}
    exec(compile(source, "solution.py", "exec"), namespace)
    return namespace[problem.tests.function]


def share(problem: Problem, function: Callable[..., Any], seed: int) -> float:
    """The score of a function, as grading defines it."""
    assert problem.tests is not None
    passed: dict[bool, list[bool]] = {False: [], True: []}
    for case in problem.tests.cases(seed):
        try:
            value = function(*copy.deepcopy(case.arguments))
        except Exception:
            value = ...
        passed[case.kept].append(same(case.expected, value, problem.tests.tolerance))
    kept = passed[True] or [True]
    return sum(passed[False]) / len(passed[False]) * sum(kept) / len(kept)


def remembering(problem: Problem, otherwise: Callable[..., Any] = lambda *arguments: None) -> Callable[..., Any]:
    """A function that knows the calls that the text shows, and nothing else."""
    assert problem.tests is not None
    name = problem.tests.function
    right = function_of(problem, problem.solution)
    lines = [line for line in problem.text.splitlines() if line.startswith(f"{name}(")]
    calls = [line.partition(" returns ")[0] for line in lines]
    known = {}
    for call in calls:
        arguments = eval(f"[{call[len(name) + 1 : -1]}]")
        known[json.dumps(arguments)] = right(*copy.deepcopy(arguments))
    assert known
    return lambda *arguments: known.get(json.dumps(list(arguments)), otherwise(*arguments))


def alone(generator: Generator, level: int, seeds: range) -> list[tuple[Problem, float, float]]:
    """Problems with the scores of their solution and of their mistake."""
    found = []
    for seed in seeds:
        problem = made(generator, level, seed)
        right, wrong = (function_of(problem, source) for source in (problem.solution, problem.wrong))
        found.append((problem, share(problem, right, seed), share(problem, wrong, seed)))
    return found
