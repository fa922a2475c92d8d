"""``mcpgym env add``: install, look, record. Until the record is written nothing is added, whatever happens."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcpgym.isolated.records import LOCK, SCHEMA, data_folder, records
from mcpgym_clients.console import escaped, out, talk, warn
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.sharing.installers import Installed, install
from mcpgym_clients.sharing.looking import Found, look
from mcpgym_clients.sharing.places import alone, new_folder, refuse_other_systems, sweep
from mcpgym_clients.sharing.specs import package_of, plain_name, whole_spec, without_password
from mcpgym_rl.files import write_atomically


def add(spec: str, python: str | None, *, replace: bool, anyway: bool, as_json: bool) -> None:
    """Add a package's environments.

    Raises:
        UsageProblem: ``spec`` or ``python`` names nothing.
        CommandFailed: it cannot be installed, or may not be added; the text says why.
    """
    refuse_other_systems()
    spec = whole_spec(spec)
    folder = data_folder()
    with alone(folder) as lock:
        sweep(folder)
        _refuse_known(spec, replace)
        venv = new_folder(folder)
        try:
            with talk().status(f"installing {escaped(without_password(spec))} …"):
                made = install(venv, spec, python, lock)
            (venv / LOCK).touch(0o600)
            with talk().status("looking at it, and checking it …"):
                found = look(venv, without_password(spec), replace)
            _refuse_broken(found, anyway)
            record = _record(without_password(spec), venv, made, found)
            path = folder / f"{plain_name(record['package'])}.json"
            write_atomically(path, record)
        except BaseException:
            shutil.rmtree(venv, ignore_errors=True)  # which was made a moment ago, under a name that nobody had
            raise
        sweep(folder)
    _tell(record, as_json)


def _refuse_known(spec: str, replace: bool) -> None:
    """What is there already need not be installed to be refused."""
    name = package_of(spec)
    known = next((record for record in records() if plain_name(record.package) == name), None)
    if known is not None and not replace:
        raise CommandFailed(
            f"{known.package} {known.version} was added already: --replace puts this in its place, and "
            f"mcpgym env remove {known.package} takes it away"
        )


def _refuse_broken(found: Found, anyway: bool) -> None:
    """Refuse what breaks the contract: its scores could be wrong, or read by its policies, and nobody would see it."""
    broken = {name: about["findings"] for name, about in found.environments.items() if about["findings"]}
    for name, findings in broken.items():
        for finding in findings:
            talk().print(f"[red]✗[/red] {escaped(name)}: [bold]{escaped(finding['rule'])}[/bold]", soft_wrap=True)
            talk().print(f"  {escaped(finding['where'])}: {escaped(finding['problem'])}", soft_wrap=True)
    if broken and not anyway:
        raise CommandFailed(
            f"{', '.join(broken)} breaks the contract (mcpgym check), and its scores may be wrong: it is not added. "
            "Tell its author; --anyway adds it nevertheless, and mcpgym env list goes on saying so"
        )
    if broken:
        warn(f"added although it breaks the contract: {', '.join(broken)}")


def _record(spec: str, venv: Path, made: Installed, found: Found) -> dict[str, Any]:
    from mcpgym import __version__

    origin = found.package["from"]
    return {
        "schema": SCHEMA,
        "package": found.package["name"],
        "version": found.package["version"],
        "spec": spec,
        "origin": None if origin is None else _public(origin),
        "wheel_sha256": made.wheel_sha256,
        "files_sha256": found.package["files_sha256"],
        "folder": venv.name,
        "python": found.python,
        "mcpgym": __version__,
        "installer": made.installer,
        "added": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "environments": found.environments,
    }


def _public(origin: Mapping[str, Any]) -> dict[str, Any]:
    return {**origin, "url": without_password(str(origin.get("url", "")))}


def _tell(record: Mapping[str, Any], as_json: bool) -> None:
    names = list(record["environments"])
    if as_json:
        print(
            json.dumps({key: value for key, value in record.items() if key != "environments"} | {"environments": names})
        )
        return
    out().print(
        f"[green]✓[/green] {escaped(record['package'])} {escaped(record['version'])}: [cyan]{escaped(', '.join(names))}"
        f"[/cyan] [dim](Python {record['python']}, by {escaped(record['installer'])})[/dim]",
        soft_wrap=True,
    )
    out().print(f"\n[dim]mcpgym play {escaped(names[0])} lets you try it; mcpgym env info shows the rest.[/dim]")
