"""``mcpgym bundle``: writes an environment's MCP Bundle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcpgym.registry import load_environment
from mcpgym_clients.bundling.archive import archive
from mcpgym_clients.bundling.contents import contents
from mcpgym_clients.bundling.distributions import home_of, needed
from mcpgym_clients.bundling.settings import settings_of
from mcpgym_clients.console import escaped, out, warn
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.files import require_place
from mcpgym_clients.options import parse_config
from mcpgym_rl.files import replace_whole

SUFFIX = ".mcpb"


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """What was typed. ``settings`` are the fields to offer, None for all; ``extras`` those of the package to install
    with."""

    environment: str
    out: Path | None = None
    config: Sequence[str] = ()
    settings: Sequence[str] | None = None
    extras: Sequence[str] = ()
    force: bool = False


def run(options: BundleOptions) -> None:
    """Write the bundle and say what is in it.

    Raises:
        UsageProblem: the file is there already, has another suffix, or there is no such folder.
        ConfigurationError: there is no such environment, configuration, setting or extra, or its package cannot be
            bundled.
    """
    path = options.out or Path(f"{options.environment}{SUFFIX}")
    config = parse_config(options.config, [options.environment])[options.environment]
    environment = load_environment(options.environment, config)
    home, module = home_of(options.environment)
    if path.suffix != SUFFIX:
        raise UsageProblem(f"--out {path}: clients know a bundle by its suffix; write {path.with_suffix(SUFFIX).name}")
    require_place("--out", path, f"{environment.name}{SUFFIX}")
    if path.exists() and not options.force:
        raise UsageProblem(f"{path} is there already; replace it with --force, or name another file with --out")
    settings = settings_of(environment.config, config, options.settings)
    packages = needed(home, module, options.extras)
    files = contents(environment, home, packages, settings)
    for place in environment.config.reaches():
        warn(f"{place} is a place on this machine: on another one it has to be changed in the client's settings")
    whole = archive(files)
    replace_whole(path, whole)
    carried = [package.distribution for package in packages if package.wheel is not None]
    asked = [package.requirement for package in packages if package.wheel is None]
    out().print(f"Wrote [cyan]{escaped(path)}[/cyan], {len(whole) / 1e6:.1f} MB, for MCP clients that read bundles.")
    if carried:
        names = ", ".join(f"{item.name} {item.version}" for item in carried)
        out().print(f"It carries {escaped(names)}, installed here from no index.", soft_wrap=True)
    if asked:
        out().print(f"It asks an index for {escaped(', '.join(asked))}.", soft_wrap=True)
    if settings.form:
        out().print(f"Its settings: {escaped(', '.join(settings.form))}.", soft_wrap=True)
    out().print("Then: open it in Claude Desktop with a double click; uv fetches the rest when it first starts.")
    out().print(f"Say first: [green]Start an episode of {escaped(environment.name)} and play it to the end.[/green]")
