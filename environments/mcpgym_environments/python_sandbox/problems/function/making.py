"""How a generator of functions becomes a problem: it says the rules, the inputs and the right function; the rest is "
"here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from textwrap import dedent
from typing import Any

from mcpgym_environments.python_sandbox.problems.problem import FunctionTests, Problem
from mcpgym_environments.python_sandbox.problems.testing import Arguments, case_maker, copied, rules, shown_call


@dataclass(frozen=True, slots=True)
class Wanted:
    """One function to be written.

    ``parameters`` describes each parameter; ``rules`` is the specification in prose, ``returns`` says what comes back;
    ``inputs`` yields arguments without end, the edge cases first; ``shown`` are the arguments of the examples in the
    text. ``reference`` is the right function here in the server; ``solution`` is one that is written independently of
    it, as the source of ``solution.py``, and ``mistake`` is what to replace in it by what, to get it wrong.
    """

    function: str
    parameters: Mapping[str, str]
    rules: str
    returns: str
    reference: Callable[..., Any]
    inputs: Callable[[Random], Iterator[Arguments]]
    shown: Sequence[Arguments]
    solution: str
    mistake: tuple[str, str]
    tolerance: float | None = None


def written(generator: str, level: int, wanted: Wanted) -> Problem:
    """The problem of writing that function."""
    solution = dedent(wanted.solution).strip() + "\n"
    right, mistaken = wanted.mistake
    if solution.count(right) != 1:
        raise RuntimeError(f"{generator}: {right!r} must stand once in the solution to be replaced by a mistake")
    tests = FunctionTests(
        wanted.function,
        wanted.parameters,
        case_maker(generator, wanted.inputs, wanted.reference, wanted.shown),
        wanted.tolerance,
    )
    signature = f"{wanted.function}({', '.join(wanted.parameters)})"
    examples = "\n".join(
        f"{shown_call(wanted.function, arguments)} returns {wanted.reference(*copied(arguments))!r}"
        for arguments in wanted.shown
    )
    described = "\n".join(f"- {name}: {text}" for name, text in wanted.parameters.items())
    text = "\n\n".join(
        (
            f"Write the Python function {signature} in the file solution.py, then submit.",
            described,
            wanted.rules.strip(),
            f"Return {wanted.returns}",
            f"Examples:\n{examples}",
            rules(wanted.function, tests.cpu_seconds),
        )
    )
    return Problem(
        generator,
        "function",
        level,
        text,
        tests=tests,
        solution=solution,
        wrong=solution.replace(right, mistaken),
    )
