"""How a right program becomes a broken one, with the failures that its user sees and the hidden tests of its repair."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from textwrap import dedent, indent
from traceback import walk_tb
from typing import Any, NamedTuple

from mcpgym import derive_seed
from mcpgym_environments.python_sandbox.problems.problem import Case, FunctionTests, Problem
from mcpgym_environments.python_sandbox.problems.same import same
from mcpgym_environments.python_sandbox.problems.testing import (
    Arguments,
    copied,
    drawn_cases,
    key,
    rules,
    shown_call,
)

FILE = "solution.py"
"""The name of the broken program in the workspace."""

FAILING, KEPT = 13, 5
"""How many hidden tests there are of what fails, and of what must go on working."""

_TRIED = 30
"""How many inputs are tried to see whether a bug shows."""

_SHOWS = 3
"""In how many of them it must show."""


class Bug(NamedTuple):
    """What stands in the program instead of what should, and how hard that is to find: 1 to 3.

    A program with any of its bugs, or several, still comes to an end on every input: it is run in the server.
    """

    right: str
    wrong: str
    hardness: int


@dataclass(frozen=True, slots=True)
class Program:
    """A right program, and how it can be broken.

    ``purpose`` says in full what ``function`` should do; ``inputs`` yields arguments without end, and ``small`` gives
    some that are short enough to be shown.
    """

    function: str
    parameters: Mapping[str, str]
    purpose: str
    source: str
    bugs: Sequence[Bug]
    inputs: Callable[[Random], Iterator[Arguments]]
    small: Callable[[Random], Arguments]


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception with which a program stopped."""

    error: Exception

    def text(self, source: str) -> str:
        """What its user sees: where it came from and what it is, without what differs between versions of Python."""
        lines = source.splitlines()
        parts = []
        for frame, number in walk_tb(self.error.__traceback__):
            if frame.f_code.co_filename == FILE:
                parts.append(f"  {FILE}, line {number}, in {frame.f_code.co_name}")
                parts.append(f"    {lines[number - 1].strip()}")
        last = f"{type(self.error).__name__}: {self.error}"
        return "\n".join([*parts[-12:], last])


def loaded(source: str, function: str) -> Callable[..., Any]:
    """The function of a program of ours. Gives a :class:`Failure` where the program raises an exception."""
    namespace: dict[str, Any] = {"__name__": "solution"}
    exec(compile(source, FILE, "exec"), namespace)  # our own text, with nothing of a policy in it

    def call(*arguments: Any) -> Any:
        try:
            return namespace[function](*copied(arguments))
        except Exception as error:
            return Failure(error)

    return call


def broken(generator: str, level: int, random: Random, program: Program) -> Problem:
    """A problem of ``level``: the program with one, two or three bugs, each of which shows without the others."""
    right_source = dedent(program.source).strip() + "\n"
    right = loaded(right_source, program.function)
    bugs = _chosen(program, right_source, right, level, random)
    broken_source = _with(right_source, bugs)
    failing = loaded(broken_source, program.function)
    shown = _shown(program, right, failing, random, {1: 3, 2: 3, 3: 3, 4: 2, 5: 2}[level])
    calls = [arguments for arguments, _ in shown]

    def cases(seed: int) -> Sequence[Case]:
        drawn = Random(derive_seed("tests", generator, seed))

        def fails(arguments: Arguments, expected: Any) -> bool:
            return not same(expected, failing(*arguments))

        made = drawn_cases(program.inputs, right, calls, drawn, FAILING, fails)
        taken = [*calls, *(case.arguments for case in made)]
        kept = drawn_cases(
            program.inputs,
            right,
            taken,
            drawn,
            KEPT,
            lambda arguments, expected: not fails(arguments, expected),
            least=0,
            draws=_TRIED,
        )
        return [*made, *(case._replace(kept=True) for case in kept)]

    tests = FunctionTests(program.function, program.parameters, cases)
    text = _text(program, broken_source, shown, len(bugs), level, tests.cpu_seconds)
    wrong = _with(right_source, bugs[:1]) if len(bugs) > 1 else _remembering(broken_source, program.function, shown)
    return Problem(
        generator,
        "debug",
        level,
        text,
        tests=tests,
        files={FILE: broken_source.encode(), "check.py": _check(program.function, shown).encode()},
        solution=right_source,
        wrong=wrong,
    )


def _chosen(program: Program, source: str, right: Callable[..., Any], level: int, random: Random) -> list[Bug]:
    """As many bugs as the level has, of its hardness; each one shows alone. The one that shows most often comes "
    "first."""
    count = {1: 1, 2: 1, 3: 2, 4: 2, 5: 3}[level]
    hardest = {1: 1, 2: 3, 3: 2, 4: 3, 5: 3}[level]
    least = 2 if level in (2, 4) else 1
    able = [bug for bug in program.bugs if least <= bug.hardness <= hardest]
    tried = list(islice(program.inputs(Random(random.random())), _TRIED))
    expected = [right(*arguments) for arguments in tried]
    if any(isinstance(value, Failure) for value in expected):
        raise RuntimeError(f"{program.function}: the right program fails")
    chosen: list[tuple[int, Bug]] = []
    for bug in random.sample(able, len(able)):
        if source.count(bug.right) != 1:
            raise RuntimeError(f"{program.function}: {bug.right!r} must stand once in the program")
        call = loaded(_with(source, [bug]), program.function)
        seen = sum(not same(value, call(*arguments)) for arguments, value in zip(tried, expected, strict=True))
        if seen >= _SHOWS and not any(_meet(source, bug, other) for _, other in chosen):
            chosen.append((seen, bug))
            if len(chosen) == count:
                return [bug for _, bug in sorted(chosen, key=lambda pair: -pair[0])]
    raise RuntimeError(f"{program.function}: only {len(chosen)} of {count} bugs of level {level} show")


def _meet(source: str, one: Bug, other: Bug) -> bool:
    """Whether two bugs are at the same place."""
    first, second = source.index(one.right), source.index(other.right)
    return first < second + len(other.right) and second < first + len(one.right)


def _with(source: str, bugs: Sequence[Bug]) -> str:
    for bug in sorted(bugs, key=lambda bug: -source.index(bug.right)):
        start = source.index(bug.right)
        source = source[:start] + bug.wrong + source[start + len(bug.right) :]
    return source


def _shown(
    program: Program, right: Callable[..., Any], failing: Callable[..., Any], random: Random, count: int
) -> list[tuple[Arguments, tuple[Any, Any]]]:
    """Calls that fail, with what comes and what should come; small ones where such are found."""
    found: dict[str, tuple[Arguments, tuple[Any, Any]]] = {}
    many = program.inputs(random)
    for trial in range(120):
        arguments = program.small(random) if trial < 80 else next(many)
        expected, got = right(*arguments), failing(*arguments)
        if not same(expected, got):
            found.setdefault(key(arguments), (arguments, (expected, got)))
            if len(found) == count:
                break
    return list(found.values())


def _text(
    program: Program,
    source: str,
    shown: Sequence[tuple[Arguments, tuple[Any, Any]]],
    bugs: int,
    level: int,
    cpu: float,
) -> str:
    lines = []
    for arguments, (expected, got) in shown:
        call = shown_call(program.function, arguments)
        if isinstance(got, Failure):
            lines.append(f"{call}\nfails:\n{indent(got.text(source), '    ')}\nand should return {expected!r}")
        else:
            lines.append(f"{call}\nreturns {got!r}\nand should return {expected!r}")
    how_many = "There is one mistake in it." if bugs == 1 and level == 1 else "There may be several mistakes in it."
    described = "\n".join(f"- {name}: {text}" for name, text in program.parameters.items())
    signature = f"{program.function}({', '.join(program.parameters)})"
    return "\n\n".join(
        (
            f"The program {FILE} in the workspace is broken. Find out why, repair the file, then submit. {how_many}",
            f"What {signature} should do:",
            described,
            "\n".join(" ".join(paragraph.split()) for paragraph in program.purpose.split("\n\n")),
            "What was seen (check.py makes these calls):",
            *lines,
            rules(program.function, cpu) + " What the program did right it must go on doing.",
        )
    )


def _check(function: str, shown: Sequence[tuple[Arguments, tuple[Any, Any]]]) -> str:
    calls = [(list(arguments), expected) for arguments, (expected, _) in shown]
    return (
        dedent(
            """\
        # Makes the calls that failed: exec(open("check.py").read())
        import copy

        calls = CALLS
        program = {"__name__": "solution"}
        exec(compile(open("FILE").read(), "FILE", "exec"), program)
        for arguments, expected in calls:
            got = program["FUNCTION"](*copy.deepcopy(arguments))
            print("right" if got == expected else "WRONG", arguments, "gives", repr(got), "wanted", repr(expected))
        """
        )
        .replace("CALLS", repr(calls))
        .replace("FILE", FILE)
        .replace("FUNCTION", function)
    )


def _remembering(source: str, function: str, shown: Sequence[tuple[Arguments, tuple[Any, Any]]]) -> str:
    """The broken program with the calls of the text patched in: right there, and nowhere else."""
    known = {json.dumps(list(arguments)): expected for arguments, (expected, _) in shown}
    return (
        f"{source}\n\nimport json\n\n_known, _broken = {known!r}, {function}\n\n\ndef {function}(*arguments):\n"
        f"    asked = json.dumps(list(arguments))\n"
        f"    return _known[asked] if asked in _known else _broken(*arguments)\n"
    )
