"""``mcpgym scan``: run the scan, print what it found, and fail when that is anything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from mcpgym_clients.console import escaped, out, talk
from mcpgym_clients.failures import CommandFailed, UsageProblem
from mcpgym_clients.options import parse_config
from mcpgym_clients.scanning.report import ScanReport

SHOWN = 200
"""Characters of an excerpt that are printed."""


def run(
    name: str,
    *,
    config: Sequence[str] = (),
    seed: int = 0,
    only: Sequence[str] = (),
    allow: Sequence[str] = (),
    canaries: Sequence[str] = (),
    play: bool = False,
    headers: Sequence[str] = (),
    json_file: Path | None = None,
) -> None:
    """Scan the environment, or the server at the URL, ``name``.

    Raises:
        CommandFailed: something leaked.
        UsageProblem: options that do not go with what is scanned.
        UnknownNameError, ConfigurationError: there is no such environment or configuration.
    """
    remote = name.startswith(("http://", "https://"))
    _refuse_contradictions(remote, config, only, allow, canaries, play, headers)
    with talk().status(f"scanning {escaped(name)} …"):
        if remote:
            from mcpgym_clients.scanning.remote import scan_url

            report = scan_url(name, canaries=canaries, play=play, headers=headers, seed=seed)
        else:
            from mcpgym.registry import load_environment
            from mcpgym_clients.scanning.scan import PARTS, scan_environment

            environment = load_environment(name, parse_config(config, [name])[name])
            report = scan_environment(environment, seed=seed, parts=only or PARTS, allow=allow)
    if json_file is not None:
        _write(json_file, report)
    show(report)
    if not report.ok:
        count = len(report.findings) + report.left_out
        raise CommandFailed(f"{report.target} leaks: {count} finding{'s' if count > 1 else ''}")


def show(report: ScanReport) -> None:
    """Print the report: what was looked at, and what was found."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("channel")
    table.add_column("answers", justify="right")
    table.add_column("bytes", justify="right")
    for channel, row in report.channels.items():
        table.add_row(escaped(channel), f"{row['exchanges']:,}", f"{row['bytes']:,}")
    out().print(table)
    planted = ", ".join(f"{count:,} {kind}" for kind, count in report.canaries.items()) or "none"
    out().print(f"[dim]canaries:[/dim] {escaped(planted)}; {report.forms:,} forms of them", soft_wrap=True)
    for finding in report.findings:
        times = f" ({finding.times} times)" if finding.times > 1 else ""
        out().print(
            f"[red]✗[/red] [bold]{escaped(finding.kind)}[/bold]: {escaped(finding.what)}{times}", soft_wrap=True
        )
        out().print(
            f"  in {escaped(finding.channel)}, {escaped(finding.where)}: {escaped(finding.how)}", soft_wrap=True
        )
        if finding.also:
            out().print(f"  also in {escaped(', '.join(finding.also))}", soft_wrap=True)
        if finding.excerpt:
            out().print(f"  [dim]{escaped(_one_line(finding.excerpt))}[/dim]", soft_wrap=True)
        out().print(f"  [green]fix:[/green] {escaped(finding.fix)}", soft_wrap=True)
    if report.left_out:
        out().print(f"[red]✗[/red] and {report.left_out} more of these kinds", soft_wrap=True)
    for note in report.notes:
        out().print(f"[yellow]note:[/yellow] {escaped(note)}", soft_wrap=True)
    if report.ok:
        version = f" {report.version}" if report.version else ""
        played = f"{report.episodes} episodes, " if report.episodes else ""
        out().print(
            f"[green]✓[/green] {escaped(report.target)}{escaped(version)}: nothing leaked "
            f"[dim]({played}{report.requests:,} answers, {report.size:,} bytes, {report.seconds:g} s)[/dim]",
            soft_wrap=True,
        )


def _one_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _write(file: Path, report: ScanReport) -> None:
    draft = file.with_name(f".{file.name}.draft")
    try:
        draft.write_text(json.dumps(report.as_json(), indent=2) + "\n", encoding="utf-8")
        draft.replace(file)
    except OSError as error:
        raise UsageProblem(f"--json {file} cannot be written: {error.strerror}") from None


def _refuse_contradictions(
    remote: bool,
    config: Sequence[str],
    only: Sequence[str],
    allow: Sequence[str],
    canaries: Sequence[str],
    play: bool,
    headers: Sequence[str],
) -> None:
    if remote:
        wrong: dict[str, object] = {"--config": config, "--only": only, "--allow": allow}
        what = "belongs to an environment that is served here, and this is the URL of a server that runs already"
    else:
        wrong = {"--canary": canaries, "--play": play, "--header": headers}
        what = "belongs to the URL of a server that runs already; an environment is played, and has canaries, anyway"
    for option, given in wrong.items():
        if given:
            raise UsageProblem(f"{option} {what}")
