"""The hidden tests of a function: drawn from an episode's seed, judged by a trusted implementation in the server.

What generators of the families ``function`` and ``debug`` share: which inputs become tests, how calls are shown, and
what every such text says about how it is graded.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

from mcpgym import derive_seed
from mcpgym_environments.python_sandbox.problems.problem import Case

Arguments = tuple[Any, ...]

TESTS = 16
"""How many hidden tests an episode has."""

_DRAWS = 400
"""How many inputs are looked at for them, at most."""

_ALIKE = 3
"""How many tests may expect the same value where nothing else is said."""

RULES = """\
How it is graded: {function} of solution.py is called in a fresh process with other inputs than those shown here; they \
are chosen anew each time. Nothing but solution.py is there. Each call may take {seconds:g} seconds of CPU time. What \
counts is the returned value, which must be right to its type: no tuple, set, generator or NumPy value where a list or \
a number is wanted, True is not 1, and 1 is not 1.0. What the function prints does not matter."""


def rules(function: str, seconds: float) -> str:
    """What the text says about how the function is graded."""
    return RULES.format(function=function, seconds=seconds)


def shown_call(function: str, arguments: Arguments) -> str:
    """A call as one writes it."""
    return f"{function}({', '.join(map(repr, arguments))})"


def copied(arguments: Arguments) -> Arguments:
    """The same values anew, so that who is called can change nothing."""
    return tuple(json.loads(json.dumps(arguments)))


def key(value: Any) -> str:
    """The same text for the same JSON value, to compare values of our own making."""
    return json.dumps(value, sort_keys=True)


def drawn_cases(
    inputs: Callable[[Random], Iterator[Arguments]],
    reference: Callable[..., Any],
    shown: Iterable[Arguments],
    random: Random,
    count: int = TESTS,
    accept: Callable[[Arguments, Any], bool] = lambda arguments, expected: True,
    least: int | None = None,
    draws: int = _DRAWS,
    alike: int = _ALIKE,
) -> list[Case]:
    """``count`` tests: the first inputs that are new, are not shown, and do not expect what ``alike`` others expect.

    So many tests, too, may expect an argument of theirs, in whatever order: neither a constant nor an echo is worth
    much.

    Raises:
        RuntimeError: there are fewer than ``least`` (or ``count``) such inputs among the first ``draws``: the
        generator's fault.
    """
    seen = {key(arguments) for arguments in shown}
    expected_so_far: Counter[str] = Counter()
    cases: list[Case] = []
    for arguments in islice(inputs(random), draws):
        name = key(arguments)
        if name in seen:
            continue
        seen.add(name)
        expected = reference(*copied(arguments))
        kinds = [key(expected), *(["an echo"] if _is_echo(arguments, expected) else [])]
        if any(expected_so_far[kind] >= alike for kind in kinds) or not accept(arguments, expected):
            continue
        expected_so_far.update(kinds)
        cases.append(Case(arguments, expected))
        if len(cases) == count:
            return cases
    if len(cases) < (count if least is None else least):
        raise RuntimeError(f"only {len(cases)} of {count} tests among the inputs that were drawn")
    return cases


def _is_echo(arguments: Arguments, expected: Any) -> bool:
    """Whether what is expected is one of the arguments, or a list that holds the same."""
    value = key(expected)
    if any(key(argument) == value for argument in arguments):
        return True
    lists = [sorted(map(key, each)) for each in (expected, *arguments) if type(each) is list]
    return type(expected) is list and lists[0] in lists[1:]


def case_maker(
    generator: str,
    inputs: Callable[[Random], Iterator[Arguments]],
    reference: Callable[..., Any],
    shown: Sequence[Arguments],
) -> Callable[[int], Sequence[Case]]:
    """The function that makes the tests of an episode from its seed."""

    def cases(seed: int) -> Sequence[Case]:
        return drawn_cases(inputs, reference, shown, Random(derive_seed("tests", generator, seed)), alike=1)

    return cases
