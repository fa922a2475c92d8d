"""``mcpgym new``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mcpgym_clients.console import escaped, out, talk
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.scaffolding.names import names_of
from mcpgym_clients.scaffolding.writing import template_names, write_package

_CARD_SECONDS = 300


def run(name: str, template: str, folder: Path | None) -> None:
    """Write the package and say what to do with it.

    Raises:
        UsageProblem: the name, the template or the folder will not do.
    """
    names = names_of(name)
    if template not in template_names():
        raise UsageProblem(f"there is no template {template!r}; there is: {', '.join(template_names())}")
    folder = Path(name) if folder is None else folder
    if folder.exists():
        raise UsageProblem(f"{folder} is there already; --out names another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        write_package(temporary, template, names)
        with talk().status("playing it, for its README …"):
            missing = _write_card(temporary, f"{names.module}:{names.class_name}")
        temporary.chmod(0o755)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    out().print(f"[green]✓[/green] {escaped(str(folder))}: the environment [cyan]{name}[/cyan]", soft_wrap=True)
    if missing:
        out().print(f"[yellow]note:[/yellow] its README has no tables yet: {escaped(missing)}", soft_wrap=True)
    out().print(f"\nIts rules are in {escaped(str(folder / names.module))}. Now:\n", soft_wrap=True)
    lines = [f"cd {folder}", "pip install -e '.[dev]'", f"mcpgym check {name}", f"mcpgym play {name}", "pytest"]
    if (folder / names.module / "recipe.toml").exists():
        lines.append(f"mcpgym train {name}")
    lines.append(f"mcpgym env card {name} --write README.md  # after each change of the rules")
    for line in lines:
        out().print(f"  {escaped(line)}", soft_wrap=True, highlight=False)


def _write_card(folder: Path, environment: str) -> str:
    """Write the tables into the README, in a process of its own; why not, where it cannot be done."""
    from mcpgym_clients.configuring.variables import unconfigured

    command = [sys.executable, "-B", "-m", "mcpgym_clients", "env", "card", environment, "--write", "README.md"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=unconfigured([("env", "card")]),
        capture_output=True,
        text=True,
        timeout=_CARD_SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
