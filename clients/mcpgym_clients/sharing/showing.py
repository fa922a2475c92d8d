"""``mcpgym env list`` and ``mcpgym env info``: what was added, where from, and how it stands."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from mcpgym.isolated.records import Record, odd_files, records
from mcpgym.registry import installed_names
from mcpgym_clients.console import escaped, out, warn
from mcpgym_clients.sharing.places import chosen, refuse_other_systems, users


def show_all(as_json: bool) -> None:
    """Print every package that was added."""
    refuse_other_systems()
    known = records()
    if as_json:
        print(json.dumps([_about(record) for record in known], indent=2, ensure_ascii=False))
        return
    for path in odd_files():
        warn(f"{path} is no record of this mcpgym; move it away, and add the package again")
    if not known:
        out().print("Nothing was added. [dim]mcpgym env add SPEC adds a package's environments.[/dim]")
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("package", "version", "environments", "python", "state"):
        table.add_column(column, style="cyan" if column == "environments" else "", overflow="fold")
    for record in known:
        about = _about(record)
        names = ", ".join(record.environments)
        table.add_row(*map(escaped, (record.package, record.version, names, about["python"], about["state"])))
    out().print(table)


def show_one(name: str, as_json: bool) -> None:
    """Print all about one.

    Raises:
        UnknownNameError: there is none.
    """
    refuse_other_systems()
    record = chosen(name)
    about = _about(record)
    if as_json:
        print(json.dumps(about, indent=2, ensure_ascii=False))
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for key, value in about.items():
        if key not in ("environments", "origin") and value is not None:
            grid.add_row(key.replace("_", " "), escaped(value))
    out().print(grid)
    for environment in about["environments"]:
        out().print(f"\n[cyan]{escaped(environment['name'])}[/cyan] {escaped(environment['version'])}")
        out().print(
            f"  [dim]{escaped(environment['entry'])}; schema hash {environment['schema_hash']}[/dim]", soft_wrap=True
        )
        if environment["findings"]:
            out().print(f"  [red]breaks the contract: {environment['findings']} findings[/red] (mcpgym check)")


def _about(record: Record) -> dict[str, Any]:
    kept = {key: value for key, value in record.content.items() if key not in ("schema", "environments", "folder")}
    return {
        **kept,
        "state": _state(record),
        "folder": str(record.folder),
        "command": str(record.folder / "bin" / "mcpgym"),
        "environments": [_environment(name, about) for name, about in record.environments.items()],
    }


def _environment(name: str, about: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        **{key: about[key] for key in ("version", "description", "entry", "schema_hash", "splits")},
        "findings": len(about["findings"]),
    }


def _state(record: Record) -> str:
    from mcpgym.isolated.home import in_use

    if not record.python.exists():
        return f"broken: its virtual environment is gone ({record.again})"
    here = [name for name in record.environments if name in installed_names()]
    if here:
        return f"not used: {', '.join(here)} is installed here too"
    if broken := [name for name, about in record.environments.items() if about["findings"]]:
        return f"breaks the contract: {', '.join(broken)}"
    return f"in use by {users(record.folder)}" if in_use(record.folder) else "ready"
