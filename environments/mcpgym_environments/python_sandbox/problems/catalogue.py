"""All generators by name, and which problem the task at an index is.

The two splits cannot share a problem: what a generator makes belongs to ``test`` or ``train`` by a bit of its identity
(a digest of its parameters or its text), and a split takes only what belongs to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from random import Random
from typing import NamedTuple

from mcpgym import derive_seed
from mcpgym.errors import ConfigurationError, UnknownNameError
from mcpgym_environments.enumeration import stride
from mcpgym_environments.python_sandbox.problems.problem import FAMILIES, LEVELS, Generator, Problem

SPLITS = ("train", "test")
_PACKAGE = "mcpgym_environments.python_sandbox.problems"
_MOST_TRIES = 200
"""How many problems of the other split may come before one of this: a generator that makes a dozen never needs more."""


class Place(NamedTuple):
    """What the task at an index is: the ``number``-th problem of a generator at a level."""

    generator: Generator
    level: int
    number: int


@lru_cache(maxsize=1)
def all_generators() -> Mapping[str, Generator]:
    """Every generator by its name, family by family, each in the order in which its package has them."""
    found: dict[str, Generator] = {}
    for family in FAMILIES:
        for generator in import_module(f"{_PACKAGE}.{family}").GENERATORS:
            if generator.name in found or generator.family != family:
                raise ValueError(f"generator {generator.name!r} is there twice, or in another family than it says")
            found[generator.name] = generator
    return found


def find_generator(name: str, known: Mapping[str, Generator] | None = None) -> Generator:
    """The generator of this name: one of ours, or of those that are ``known``.

    Raises:
        UnknownNameError: there is none; the message offers the nearest.
    """
    known = all_generators() if known is None else known
    if name not in known:
        raise UnknownNameError("generator", name, known)
    return known[name]


def make_problem(generator: Generator, level: int, split: str, number: int) -> Problem:
    """Problem ``number`` of ``generator`` at ``level`` in ``split``: the same in every process and configuration.

    Raises:
        UnknownNameError: there is no such split.
    """
    if split not in SPLITS:
        raise UnknownNameError("split", split, SPLITS)
    random = Random(derive_seed("python-sandbox", generator.name, level, split, number))
    for _ in range(_MOST_TRIES):
        problem = generator.make(random, level)
        if split_of(problem) == split:
            return problem
    raise RuntimeError(f"{generator.name} makes no problem of level {level} for the {split} split")


def split_of(problem: Problem) -> str:
    """The split that a problem belongs to, whoever made it and however: half of all belong to each."""
    return SPLITS[problem.identity[0] & 1]


class Catalogue:
    """The problems of one configuration, made when they are asked for.

    Consecutive tasks go through all pairs of a generator and a level: as many tasks as there are pairs have each once.
    """

    def __init__(
        self,
        families: Sequence[str] = FAMILIES,
        generators: Sequence[str] | None = None,
        min_level: int = LEVELS[0],
        max_level: int = LEVELS[-1],
        own: Sequence[Generator] = (),
    ) -> None:
        """The generators of ``families``, or those of them that are named in ``generators``, at levels min to max.

        With ``own``, those and none of ours.

        Raises:
            UnknownNameError: there is no family or generator of a name; the message offers the nearest.
            ConfigurationError: nothing is left: a named generator is of another family, or has none of these levels.
        """
        for family in families:
            if family not in FAMILIES:
                raise UnknownNameError("family", family, FAMILIES)
        known = {generator.name: generator for generator in own} if own else all_generators()
        wanted = None if generators is None else [find_generator(name, known) for name in generators]
        for generator in wanted or ():
            if generator.family not in families:
                raise ConfigurationError(
                    f"generator {generator.name!r} is of the family {generator.family}, which families="
                    f"{','.join(families)} leaves out; add it there"
                )
        self.generators: tuple[Generator, ...] = tuple(
            generator
            for generator in known.values()
            if generator.family in families and (wanted is None or generator in wanted)
        )
        self._pairs = tuple(
            (generator, level)
            for generator in self.generators
            for level in generator.levels
            if min_level <= level <= max_level
        )
        if not self._pairs:
            names = ", ".join(generator.name for generator in self.generators) or "no generator"
            raise ConfigurationError(f"{names}: no problem of levels {min_level} to {max_level}")
        self._stride = stride(len(self._pairs))
        self._problem = lru_cache(maxsize=128)(self._make)

    def __len__(self) -> int:
        """How many pairs of a generator and a level there are."""
        return len(self._pairs)

    def place(self, index: int) -> Place:
        """What the task at ``index`` is, in either split. Makes nothing."""
        round_, position = divmod(index, len(self._pairs))
        return Place(*self._pairs[(position + 1) * self._stride % len(self._pairs)], round_)

    def problem(self, split: str, index: int) -> Problem:
        """The problem of the task at ``index`` of ``split``; always the same, and kept while it is likely to be needed.

        Raises:
            UnknownNameError: there is no such split.
        """
        return self._problem(split, index)

    def _make(self, split: str, index: int) -> Problem:
        place = self.place(index)
        return make_problem(place.generator, place.level, split, place.number)
