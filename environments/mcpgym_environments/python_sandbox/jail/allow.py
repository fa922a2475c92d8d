"""Which installed distributions a session can see, and exactly which of their files.

A virtual environment holds more than numpy: the environment's own package with its graders and hidden tests, other
people's code, whatever lies beside it. So a session's ``site-packages`` holds only the named distributions and what
they require, and of each only the files that it declares (``RECORD``), less tests and what only compilers read.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

NEEDLESS = frozenset((".pyi", ".h", ".hpp", ".c", ".cpp", ".pxd", ".pyx", ".a", ".f", ".f90", ".rst", ".md", ".pyc"))
"""Endings of files that running code never reads; compiled ``.pyc`` files come from beside their sources."""
WELCOME = ("tzdata",)
"""Distributions that come along where they are installed: ``zoneinfo`` has no other source in a session."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a session gets of the installed distributions.

    ``files`` has each real path once and where it lies under ``site-packages``; ``modules`` are the importable names
    of the distributions that were asked for, in their order, and ``versions`` those distributions' versions.
    """

    files: Sequence[tuple[str, str]]
    modules: Sequence[str]
    versions: Mapping[str, str]


class NotInstalled(Exception):
    """A distribution that was asked for is not there, or does not say which files are its own."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name


def allowed(names: Iterable[str], folders: Sequence[str]) -> Allowed:
    """The distributions of these names in these folders (a ``sys.path``), with all that they require.

    Raises:
        NotInstalled: one of them is missing, or declares no files.
    """
    asked = [_normal(name) for name in names]
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [(name, True) for name in asked] + [(name, False) for name in WELCOME if asked]
    while waiting:
        name, needed = waiting.pop(0)
        if name in found:
            continue
        distribution = next(iter(importlib.metadata.distributions(name=name, path=list(folders))), None)
        if distribution is None:
            if needed:
                raise NotInstalled(name, f"the distribution {name} is not installed")
            continue
        found[name] = distribution
        waiting += [(required, needed) for required, needed in _required(distribution)]
    files: dict[str, str] = {}
    modules: list[str] = []
    for name, distribution in found.items():
        before = len(files)
        tops = _declared(name, distribution, files)
        if len(files) == before:
            raise NotInstalled(
                name, f"the distribution {name} is installed, but none of the files it declares is there"
            )
        if name in asked:
            modules += sorted(tops)
    return Allowed(
        sorted((source, place) for place, source in files.items()),
        modules,
        {name: found[name].version for name in asked},
    )


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _required(distribution: importlib.metadata.Distribution) -> Iterable[tuple[str, bool]]:
    """The names of what it requires, and whether it does so on every machine; those of its extras are left out."""
    for line in distribution.requires or ():
        requirement, _, condition = line.partition(";")
        if "extra" not in condition:
            match = re.match(r"[A-Za-z0-9._-]+", requirement.strip())
            if match:
                yield _normal(match.group()), not condition.strip()


def _declared(name: str, distribution: importlib.metadata.Distribution, files: dict[str, str]) -> set[str]:
    """Add the distribution's files to ``files`` (place to real path); gives its importable names."""
    declared = distribution.files
    if declared is None:
        raise NotInstalled(
            name, f"the distribution {name} has no list of its files (RECORD): install it with pip or uv"
        )
    tops = set()
    for entry in declared:
        parts = entry.parts
        if (
            ".." in parts
            or entry.is_absolute()
            or "tests" in parts
            or entry.suffix in NEEDLESS
            or entry.suffix == ".pth"
        ):
            continue  # what lies outside site-packages (scripts) or needs no place in a session
        source = os.path.realpath(str(distribution.locate_file(entry)))
        if not os.path.isfile(source):
            continue
        place = "/".join(parts)
        files[place] = source
        if entry.suffix == ".py" and (len(parts) == 1 or (len(parts) == 2 and parts[1] == "__init__.py")):
            tops.add(parts[0].removesuffix(".py"))
    return tops
