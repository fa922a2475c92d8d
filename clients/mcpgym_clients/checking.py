"""``mcpgym check``: does an environment keep its contract?"""

from __future__ import annotations

from collections.abc import Sequence

from mcpgym.check import check_environment
from mcpgym.registry import load_environment
from mcpgym_clients.console import escaped, out, talk
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.options import parse_config


def check_one(name: str, config: Sequence[str]) -> None:
    """Print what :func:`mcpgym.check_environment` finds.

    Raises:
        CommandFailed: it found something.
        UnknownNameError, ConfigurationError: there is no such environment or configuration, or it cannot be loaded.
    """
    environment = load_environment(name, parse_config(config, [name])[name])
    with talk().status(f"checking {escaped(environment.name)} …"):
        report = check_environment(environment)
    for finding in report.findings:
        out().print(f"[red]✗[/red] [bold]{escaped(finding.rule)}[/bold] {escaped(finding.where)}", soft_wrap=True)
        out().print(f"  {escaped(finding.problem)}", soft_wrap=True)
        out().print(f"  [green]fix:[/green] {escaped(finding.fix)}", soft_wrap=True)
    for note in report.notes:
        out().print(f"[yellow]note:[/yellow] {escaped(note)}", soft_wrap=True)
    if report.findings:
        count = len(report.findings)
        raise CommandFailed(f"{environment.name} breaks its contract: {count} finding{'s' if count > 1 else ''}")
    out().print(
        f"[green]✓[/green] {escaped(environment.name)} {escaped(environment.version)} keeps the contract "
        f"[dim]({report.episodes} episodes played)[/dim]"
    )
