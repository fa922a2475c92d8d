"""``mcpgym verify``: whether scores were given by the server whose key signed them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpgym_clients.console import escaped, one_line, out
from mcpgym_clients.failures import FAILURE, CommandFailed, UsageProblem
from mcpgym_clients.files import TRACES
from mcpgym_clients.receipt_census import Census
from mcpgym_clients.receipt_checks import Checked, check_file, receipt_files, trusted_keys
from mcpgym_rl.files import write_atomically

SHOWN = 20
"""How many rejected lines are printed; all are in the JSON."""


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What was typed. ``server`` is where to replay; None for here."""

    paths: Sequence[Path]
    keys: Sequence[str] = ()
    replay: bool = False
    server: str | None = None
    secret_file: Path | None = None
    json_file: Path | None = None
    environments: Sequence[str] = ()
    trust: bool = False


@dataclass(slots=True)
class Verification:
    """What was found: how many receipts hold, which lines do not and why, and what a reader should know."""

    census: Census = field(default_factory=Census)
    files: dict[str, Counter[str]] = field(default_factory=dict)
    rejected: list[tuple[str, str]] = field(default_factory=list)
    replayed: int = 0
    notes: list[str] = field(default_factory=list)
    _folders: dict[Path, dict[str, set[str]]] = field(default_factory=dict)

    def add(self, path: Path, checked: Checked) -> None:
        """Count one line."""
        counts = self.files.setdefault(str(path), Counter())
        if checked.problem is not None:
            counts["rejected"] += 1
            self.rejected.append((checked.where, checked.problem))
        elif checked.receipt is None:
            counts["unscored" if checked.trace is not None else "incomplete"] += 1
        else:
            counts["verified"] += 1
            kind = "traces" if checked.trace is not None else "receipts"
            self.census.add(checked.receipt, kind)
            self._folders.setdefault(path.parent, {}).setdefault(kind, set()).add(checked.receipt.signature)

    def finish(self) -> None:
        """Gather the notes."""
        for folder, kinds in self._folders.items():
            if len(kinds) == 2 and (odd := kinds["traces"] ^ kinds["receipts"]):
                self.notes.append(f"{folder}: {len(odd)} receipts are in one of traces and receipts only")
        self.notes += self.census.notes()

    def as_json(self, keys: Sequence[str]) -> dict[str, Any]:
        """The content of ``--json``."""
        return {
            "schema": "mcpgym.verification/1",
            "keys": list(keys),
            "files": {name: dict(sorted(counts.items())) for name, counts in self.files.items()},
            "verified": len(self.census.receipts),
            "replayed": self.replayed,
            "rejected": [{"where": where, "problem": problem} for where, problem in self.rejected],
            "notes": self.notes,
        }


def run(options: VerifyOptions) -> int:
    """Check everything; the exit code: 1 when anything was rejected.

    Raises:
        UsageProblem: a path is not there, holds nothing, or what is asked for does not go together.
        ConfigurationError: a key is none, or a file cannot be read.
        CommandFailed: there is no receipt.
    """
    if (options.server or options.secret_file or options.environments) and not options.replay:
        raise UsageProblem("--server and --env say where and what to replay: add --replay")
    keys = trusted_keys(options.keys)
    files = receipt_files(options.paths, traces_too=True)
    if not files:
        raise UsageProblem(f"no receipts and no traces in {', '.join(map(str, options.paths))}")
    if options.replay:
        files = [*dict.fromkeys([*files, *_beside(files)])]
    found = Verification()
    to_replay: list[Checked] = []
    for path in files:
        for checked in check_file(path, keys):
            found.add(path, checked)
            if options.replay and checked.receipt is not None and checked.trace is not None:
                to_replay.append(checked)
    if options.replay:
        _replay(options, to_replay, found)
    found.finish()
    if options.json_file is not None:
        write_atomically(options.json_file, found.as_json(list(keys)))
    _report(found, list(keys), options)
    if not found.census.receipts and not found.rejected:
        raise CommandFailed("nothing here is signed: there is nothing to verify")
    return FAILURE if found.rejected else 0


def _beside(files: Sequence[Path]) -> list[Path]:
    """The traces that lie beside files of receipts: what is replayed are they."""
    return [traces for path in files if (traces := path.with_name(TRACES)).is_file()]


def _replay(options: VerifyOptions, signed: Sequence[Checked], found: Verification) -> None:
    if not signed:
        raise UsageProblem("--replay plays the calls of traces again, and no trace here has a receipt that holds")
    from mcpgym_clients.receipt_replay import replay_signed

    replayed = replay_signed(signed, options.server, options.secret_file, options.environments, trust=options.trust)
    for checked, problem in asyncio.run(replayed):
        found.replayed += 1
        if problem is not None:
            found.rejected.append((checked.where, problem))


def _report(found: Verification, keys: Sequence[str], options: VerifyOptions) -> None:
    console = out()
    for name, counts in found.files.items():
        parts = ", ".join(f"{count} {word}" for word, count in sorted(counts.items(), reverse=True))
        console.print(f"{escaped(name)}: {parts}", soft_wrap=True)
    for where, problem in found.rejected[:SHOWN]:
        console.print(f"[red]rejected[/red] {escaped(one_line(where))}: {escaped(one_line(problem))}", soft_wrap=True)
    if len(found.rejected) > SHOWN:
        console.print(f"… and {len(found.rejected) - SHOWN} more" + ("" if options.json_file else "; all: --json FILE"))
    for note in found.notes:
        console.print(f"[yellow]![/yellow] {escaped(note)}", soft_wrap=True)
    own = "" if options.keys else ", your own"
    text = f"{len(found.census.receipts)} different receipts hold; checked with {', '.join(keys)}{own}"
    if options.replay:
        text += f"; {found.replayed} were replayed"
    colour = "red" if found.rejected else "green"
    verdict = f"{len(found.rejected)} rejected" if found.rejected else "none rejected"
    console.print(f"[bold {colour}]{verdict}[/bold {colour}]. {text}.", soft_wrap=True)
