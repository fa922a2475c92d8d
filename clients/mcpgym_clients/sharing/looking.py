"""What is in a new virtual environment, and whether it may be added."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcpgym.errors import InfrastructureError, McpgymError
from mcpgym.isolated.home import greet
from mcpgym.isolated.process import Child
from mcpgym.isolated.records import records
from mcpgym.registry import GROUP, installed_names
from mcpgym.schema import NAME
from mcpgym_clients.console import clean
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.sharing.specs import package_of, plain_name

LOOK_SECONDS = 120.0
CHECK_SECONDS = 900.0
TAIL = 600
"""Characters of the end of its output that are told where the process ended."""


@dataclass(frozen=True, slots=True)
class Found:
    """What is there: the package, and each environment with what is known of it and what a check found."""

    package: Mapping[str, Any]
    python: str
    environments: Mapping[str, Mapping[str, Any]]


def look(folder: Path, spec: str, replace: bool) -> Found:
    """Look at everything in the virtual environment ``folder``.

    Raises:
        CommandFailed: what is there may not, or cannot, be added; the text says what would be right.
    """
    with tempfile.TemporaryFile() as log:
        child = Child(folder / "bin" / "python", f"the process in which {spec} is looked at", errors=log)
        try:
            greet(child, "mcpgym env add")
            return _look(child, spec, replace)
        except InfrastructureError as error:
            raise CommandFailed(f"{error}{_tail(log)}") from None
        finally:
            child.end()


def _look(child: Child, spec: str, replace: bool) -> Found:
    said = child.ask_now("installed", {"name": package_of(spec)})
    if said["package"] is None:
        raise CommandFailed(f"{spec} is mcpgym itself, whose environments are here already: mcpgym list")
    package = said["package"]
    registered = said["environments"]
    if not registered:
        raise CommandFailed(
            f"{package['name']} {package['version']} registers no environment: its pyproject.toml needs a table "
            f'[project.entry-points."{GROUP}"] with NAME = "module:Class" (mcpgym new writes one)'
        )
    known = next((r for r in records() if plain_name(r.package) == plain_name(package["name"])), None)
    if known is not None and not replace:
        raise CommandFailed(
            f"{known.package} {known.version} was added already: --replace puts this in its place, and "
            f"mcpgym env remove {known.package} takes it away"
        )
    _refuse_names(package["name"], registered)
    environments = {}
    for entry in registered:
        environments[entry["name"]] = _describe(child, entry)
    return Found(package, said["python"], environments)


def _refuse_names(package: str, registered: Sequence[Mapping[str, str]]) -> None:
    here = installed_names()
    others = {
        name: r.package for r in records() if plain_name(r.package) != plain_name(package) for name in r.environments
    }
    seen: set[str] = set()
    for entry in registered:
        name = entry["name"]
        if not NAME.fullmatch(name):
            raise CommandFailed(
                f"{entry['package']} registers {name!r}, which is no environment's name: letters, digits, - and _"
            )
        if name in here:
            raise CommandFailed(
                f"{entry['package']} has the environment {name!r}, and one of this name is installed here: it would be "
                "found first. Ask its author for another name, or pip uninstall the other one"
            )
        if name in others:
            raise CommandFailed(
                f"{entry['package']} has the environment {name!r}, and so has {others[name]}, which was added: "
                f"mcpgym env remove {others[name]}"
            )
        if name in seen:
            raise CommandFailed(
                f"two packages in {package} register the environment {name!r}; its author must choose one"
            )
        seen.add(name)


def _describe(child: Child, entry: Mapping[str, str]) -> dict[str, Any]:
    place: dict[str, Any] = {"environment": entry["name"], "config": {}}
    try:
        about: dict[str, Any] = child.ask_now("describe", place, LOOK_SECONDS)
        options = {"episodes": 6, "seed": 0, "second_process": True}
        checked = child.ask_now("check", {**place, "options": options}, CHECK_SECONDS)
    except InfrastructureError:
        raise
    except McpgymError as error:
        raise CommandFailed(f"{entry['package']}: {error}") from None
    except Exception as error:
        told = f"cannot be described: {type(error).__name__}: {error}"
        raise CommandFailed(f"{entry['package']}: the environment {entry['name']!r} {told}") from None
    return {**about, "entry": entry["value"], "package": entry["package"], "findings": checked["findings"]}


def _tail(log: Any) -> str:
    log.seek(0)
    text = clean(log.read().decode("utf-8", "replace")).strip()
    return f"; it said last: {text[-TAIL:]}" if text else ""
