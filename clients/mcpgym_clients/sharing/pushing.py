"""``mcpgym env push``: put a package where others find it, or say exactly what would be put there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcpgym_clients.console import escaped, out
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.sharing.hubs import prime_command, push_to_hugging_face, repository, uploads
from mcpgym_clients.sharing.packages import read_package


def push(folder: Path, to: str, *, dry_run: bool, private: bool, as_json: bool) -> None:
    """Push the package in ``folder``.

    Raises:
        UsageProblem: the place is none, or something that it needs is missing.
        CommandFailed: the hub says no.
    """
    hub, colon, named = to.partition(":")
    if hub == "prime" and colon:
        _prime(folder, named, dry_run, as_json)
        return
    if hub != "hf" or not colon:
        raise UsageProblem(f"--to {to!r}: write hf:OWNER/NAME (Hugging Face) or prime:OWNER (Prime's Environments Hub)")
    named, package, files = repository(named), read_package(folder), uploads(folder)
    message = f"{package.name} {package.version}"
    about: dict[str, Any] = {
        "to": named,
        "commit": message,
        "files": [{"path": file.place, "bytes": len(file.content), "sha256": file.sha256} for file in files],
    }
    if not dry_run:
        about["url"] = push_to_hugging_face(named, files, message, private)
    if as_json:
        print(json.dumps(about, indent=2, ensure_ascii=False))
        return
    out().print(f"{'would push' if dry_run else 'pushed'} {escaped(message)} to {escaped(named)}:", soft_wrap=True)
    for row in about["files"]:
        out().print(
            f"  {escaped(row['path'])}  [dim]{row['bytes']:,} bytes, sha256 {row['sha256'][:16]}…[/dim]", soft_wrap=True
        )
    if dry_run:
        head = files[0].content.decode("utf-8").split("\n---\n")[0]
        out().print(f"\nREADME.md begins with\n\n{escaped(head)}\n---", soft_wrap=True)
    else:
        out().print(escaped(about["url"]), soft_wrap=True)


def _prime(folder: Path, named: str, dry_run: bool, as_json: bool) -> None:
    command = prime_command(folder, named)
    if not dry_run:
        raise UsageProblem(f"that hub's own program pushes it (pip install prime; prime login): {command}")
    if as_json:
        print(json.dumps({"folder": str(folder), "command": command}))
        return
    package = read_package(folder)
    out().print(
        f"[green]✓[/green] {escaped(folder)} has what prime needs: {escaped(package.name)} {escaped(package.version)}"
    )
    out().print(f"  {escaped(command)}", soft_wrap=True, highlight=False)
