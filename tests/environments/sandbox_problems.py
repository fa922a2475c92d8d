"""Running many solutions of problems in one clean interpreter, and reading what they were made with."""

from __future__ import annotations

import ast
import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from random import Random
from typing import Any

from mcpgym_environments.python_sandbox.problems.problem import Generator, Problem

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
    """What each program prints in a folder with the problem's files, and the CPU time it took; no packages are there."""
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
