"""``mcpgym doctor --sandbox``: what installed environments need of this machine, and whether it is there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from mcpgym.errors import ConfigurationError
from mcpgym.requirements import Requirement
from mcpgym_clients.console import escaped, one_line, out, talk, warn
from mcpgym_clients.failures import FAILURE, UsageProblem

SCHEMA = "mcpgym.requirements/1"


def run(names: Sequence[str], file: Path | None = None) -> int:
    """Print what environments need and what was found; 0 where each has all that it cannot do without, else 1.

    Args:
        names: the environments; none for all that are installed and need something.
        file: where to write it as JSON too; ``-`` prints that instead.

    Raises:
        UsageProblem: there is no folder for the file, or a named environment needs nothing.
        UnknownNameError, ConfigurationError: there is no such environment, or it does not load.
    """
    if file is not None and str(file) != "-" and not file.absolute().parent.is_dir():
        raise UsageProblem(f"--json {file}: there is no folder {file.parent}")
    found = _found(names)
    made = {"schema": SCHEMA, "ready": all(map(_ready, found.values())), "environments": _as_json(found)}
    if file is not None:
        text = json.dumps(made, indent=2) + "\n"
        if str(file) == "-":
            print(text, end="")
        else:
            file.write_text(text, encoding="utf-8")
    if file is None or str(file) != "-":
        _render(out(), found)
    return 0 if made["ready"] else FAILURE


def _found(names: Sequence[str]) -> dict[str, Sequence[Requirement]]:
    from mcpgym.registry import environment_class, environment_names

    found: dict[str, Sequence[Requirement]] = {}
    for name in dict.fromkeys(names or environment_names()):
        try:
            environment = environment_class(name)
        except ConfigurationError as error:
            if names:
                raise
            warn(f"{name} does not load and was left out: {error}")
            continue
        with talk().status(f"looking at this machine for {escaped(environment.name)} …"):
            rows = _asked(environment.name, environment.requirements)
        if rows:
            found[environment.name] = rows
        elif names:
            raise UsageProblem(f"{name} says nothing of what it needs of a machine")
    return found


def _asked(name: str, requirements: Any) -> Sequence[Requirement]:
    try:
        rows = list(requirements())
        if not all(isinstance(row, Requirement) for row in rows):
            raise TypeError("requirements() must return a list of mcpgym.Requirement")
    except Exception as error:
        return [Requirement("to say what it needs", False, f"{type(error).__name__}: {error}", f"A fault of {name}.")]
    return rows


def _ready(rows: Sequence[Requirement]) -> bool:
    return all(row.met for row in rows if row.needed)


def _as_json(found: Mapping[str, Sequence[Requirement]]) -> list[dict[str, Any]]:
    return [
        {"environment": name, "ready": _ready(rows), "requirements": [asdict(row) for row in rows]}
        for name, rows in found.items()
    ]


def _render(console: Console, found: Mapping[str, Sequence[Requirement]]) -> None:
    if not found:
        console.print("No installed environment needs anything of this machine beyond Python.")
    for place, (name, rows) in enumerate(found.items()):
        if place:
            console.print()
        console.print(f"[bold]{escaped(name)}[/bold] on this machine", soft_wrap=True)
        for row in rows:
            mark, colour = ("✓", "green") if row.met else ("✗", "red") if row.needed else ("-", "yellow")
            text = f"{escaped(one_line(row.name))}: {escaped(one_line(row.found))}"
            strong = f"[bold]{text}[/bold]" if row.needed else text
            console.print(f"  [{colour}]{mark}[/{colour}] {strong}", soft_wrap=True)
            if not row.met and row.remedy:
                console.print(f"      [cyan]→[/cyan] {escaped(one_line(row.remedy))}", soft_wrap=True)
        ready = _ready(rows)
        said = "[green]It runs here.[/green]" if ready else "[red]It does not run here as it is.[/red]"
        console.print(f"  {said}", soft_wrap=True)
