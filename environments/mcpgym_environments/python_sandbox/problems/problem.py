"""What a problem of the sandbox is, and what makes one.

Each family has a package of its own here (``compute``, ``function``, ``data``, ``debug``), whose ``GENERATORS`` is a
tuple of :class:`Generator`, usually :class:`Made`; the catalogue finds them there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from mcpgym_environments.python_sandbox.problems.answers import Answer

Family = Literal["compute", "function", "data", "debug"]

FAMILIES: tuple[Family, ...] = ("compute", "function", "data", "debug")
"""Every family, in the order in which they are shown."""

LEVELS = range(1, 6)
"""How hard a problem may be: 1 to 5."""


class Case(NamedTuple):
    """One hidden test: the positional arguments, and the value that must come back. Both hold JSON values only.

    A ``kept`` test is one that the program which the policy was given already passes: passing it earns nothing, failing
    it costs. The score is the share of the other tests that pass, times the share of the kept ones that pass.
    """

    arguments: tuple[Any, ...]
    expected: Any
    kept: bool = False


@dataclass(frozen=True, slots=True)
class FunctionTests:
    """How a function that the policy writes in ``solution.py`` is tested.

    ``cases`` makes the tests of one episode from its seed, with a trusted implementation in the server: the same seed
    always gives the same tests. ``parameters`` says what each parameter is, in order, as the text does. With a
    ``tolerance``, numbers may be off by that much (absolutely, or relatively to the expected one where that is more),
    and 1 counts as 1.0; without one a value must be the same to its type.
    """

    function: str
    parameters: Mapping[str, str]
    cases: Callable[[int], Sequence[Case]]
    tolerance: float | None = None
    cpu_seconds: float = 2.0
    """CPU time that one test may take."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: what the policy is told, what lies in its workspace, and how it is judged.

    ``answer`` (compute, data) or ``tests`` (function, debug) judges, never both. ``solution`` is Python that needs the
    standard library only: run in the workspace it prints the answer, or it is the source of a right ``solution.py``.
    ``wrong`` is the same with a plausible mistake, and scores below 1. Only ``text`` and ``files`` reach the policy.

    ``key`` is what makes this problem another than the others of its generator: its parameters, which two wordings of
    one problem share. Without one it is the text. Problems with the same key are never in both splits; nor are texts,
    so where the text does not tell the parameters (they are in a file), there is to be no key.
    """

    generator: str
    family: Family
    level: int
    text: str
    answer: Answer | None = None
    tests: FunctionTests | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    solution: str = ""
    wrong: str = ""
    key: str = ""

    def __post_init__(self) -> None:
        if (self.answer is None) == (self.tests is None):
            raise ValueError(f"{self.generator}: a problem has either an answer or tests")
        if self.level not in LEVELS:
            raise ValueError(f"{self.generator}: level {self.level} is not one of {LEVELS[0]} to {LEVELS[-1]}")
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))

    @property
    def identity(self) -> bytes:
        """A digest of the key, or of the text: equal for two wordings of one problem."""
        return hashlib.sha256(f"{self.generator}\x1f{self.key or self.text}".encode()).digest()


class Generator(Protocol):
    """Makes problems of one kind. It is pure: the same state of ``random`` and level always give the same problem."""

    @property
    def name(self) -> str:
        """What it is called in a configuration: words with hyphens."""

    @property
    def family(self) -> Family:
        """Which family its problems belong to."""

    @property
    def summary(self) -> str:
        """What its problems are about: a phrase for the table in the documentation."""

    @property
    def levels(self) -> Sequence[int]:
        """The levels it makes problems of, ascending."""

    def make(self, random: Random, level: int) -> Problem:
        """A problem of ``level``, in less than 20 ms; the only source of chance is ``random``."""


@dataclass(frozen=True, slots=True)
class Made:
    """A generator that is a function: the usual way to write one."""

    name: str
    family: Family
    summary: str
    maker: Callable[[Random, int], Problem]
    levels: Sequence[int] = LEVELS

    def make(self, random: Random, level: int) -> Problem:
        """A problem of ``level``."""
        if level not in self.levels:
            raise ValueError(f"{self.name} has no level {level}; it has {', '.join(map(str, self.levels))}")
        return self.maker(random, level)
