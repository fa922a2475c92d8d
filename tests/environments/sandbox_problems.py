"""Running many solutions of problems in one clean interpreter, and reading what they were made with."""

from __future__ import annotations

import ast
import base64
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from mcpgym_environments.python_sandbox.problems.answers import answer_text, judge
from mcpgym_environments.python_sandbox.problems.problem import Generator, Problem

SEEDS = int(os.environ.get("SANDBOX_SEEDS", "1"))
"""How many problems of each generator and level have their solutions run: more by hand than every time."""

_CHILD = """\
import base64, contextlib, io, json, os, sys, tempfile, time, traceback
answers = []
for task in json.loads(sys.stdin.read()):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, content in task["files"].items():
            with open(name, "wb") as file:
                file.write(base64.b64decode(content))
        out, started = io.StringIO(), time.process_time()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(task["source"], "<solution>", "exec"), {"__name__": "__main__"})
        except BaseException:
            out.write(traceback.format_exc())
        answers.append([out.getvalue(), time.process_time() - started])
        os.chdir("/")
print(json.dumps(answers))
"""


def outputs(programs: Sequence[tuple[Problem, str]]) -> list[tuple[str, float]]:
    """What each program prints in a folder with the problem's files, and its CPU time; no packages are there."""
    tasks = [
        {
            "files": {name: base64.b64encode(content).decode() for name, content in problem.files.items()},
            "source": source,
        }
        for problem, source in programs
    ]
    child = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _CHILD], input=json.dumps(tasks), capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    return [(text, seconds) for text, seconds in json.loads(child.stdout)]


def made(generator: Generator, level: int, seed: object = 0) -> Problem:
    return generator.make(Random(f"{generator.name} {level} {seed}"), level)


def parameters(problem: Problem) -> dict[str, Any]:
    """The values that a solution begins with."""
    values = {}
    for statement in ast.parse(problem.solution).body:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            break
        try:
            values[statement.targets[0].id] = ast.literal_eval(statement.value)
        except ValueError:
            break
    return values


def check_solutions(generators: Sequence[Generator]) -> None:
    """At every level a solution's output is right and a mistake's is wrong, in time."""
    problems = [
        made(generator, level, seed) for generator in generators for level in generator.levels for seed in range(SEEDS)
    ]
    programs = [(problem, source) for problem in problems for source in (problem.solution, problem.wrong)]
    for (problem, source), (printed, seconds) in zip(programs, outputs(programs), strict=True):
        assert problem.answer is not None
        about = f"{problem.generator}, level {problem.level}: {printed[-500:]!r}"
        assert "Traceback" not in printed, about
        assert judge(problem.answer, printed).correct == (source is problem.solution), about
        assert seconds < 5, about
        assert judge(problem.answer, answer_text(problem.answer)).correct, about


def check_guesses(generator: Generator) -> None:
    """Where problems are easiest, too, hardly any two have one answer: nothing is paid for guessing."""
    assert generator.levels[0] == 1
    answers = [made(generator, 1, f"guess {seed}").answer for seed in range(16)]
    most = Counter(answer_text(answer) for answer in answers if answer is not None).most_common(1)[0]
    assert most[1] <= 4, f"{generator.name}: {most[1]} of 16 answers are {most[0]}"


def check_texts(generator: Generator) -> None:
    """A generator is pure and quick, its texts differ, and none holds the answer; files are small."""
    for level in generator.levels:
        started = time.process_time()
        problems = [made(generator, level, seed) for seed in range(4)]
        assert (time.process_time() - started) / len(problems) < 1.0  # 20 ms, where nobody else is at work
        assert made(generator, level, 3) == problems[3]
        assert len({problem.text for problem in problems}) == len({problem.identity for problem in problems}) == 4
        for problem in problems:
            assert (problem.generator, problem.family, problem.level) == (generator.name, generator.family, level)
            assert len(problem.text) < 4_000
            assert sum(map(len, problem.files.values())) <= 200_000
            assert problem.answer is not None
            answer = answer_text(problem.answer)
            if len(answer) >= 4 and level > 1:
                assert answer not in problem.text
                assert not any(answer.encode() in content for content in problem.files.values())
                assert answer not in problem.solution
