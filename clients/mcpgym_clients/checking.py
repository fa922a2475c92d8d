"""``mcpgym check``: does an environment keep its contract?"""

from __future__ import annotations

from collections.abc import Sequence

from mcpgym.check import check_environment
from mcpgym.registry import load_environment
from mcpgym_clients.console import escaped, out
from mcpgym_clients.failures import CommandFailed
from mcpgym_clients.options import parse_config


def check_one(name: str, config: Sequence[str]) -> None:
    """Print what :func:`mcpgym.check_environment` finds.

    Raises:
        CommandFailed: it found something.
        UnknownNameError, ConfigurationError: there is no such environment or configuration, or it cannot be loaded.
    """
    environment = load_environment(name, parse_config(config, [name])[name])
    findings = check_environment(environment)
    for finding in findings:
        out().print(f"[red]✗[/red] {escaped(finding)}", soft_wrap=True)
    if findings:
        raise CommandFailed(f"{name}: {len(findings)} finding{'s' if len(findings) > 1 else ''}")
    out().print(f"[green]✓[/green] {escaped(name)} {escaped(environment.version)} keeps the contract")
