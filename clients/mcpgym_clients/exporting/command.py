"""``mcpgym export``."""

from __future__ import annotations

import keyword
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mcpgym_clients.console import escaped, out, warn
from mcpgym_clients.exporting.facts import Facts, facts_of
from mcpgym_clients.exporting.writing import inspect_file, serve_command, verifiers_files
from mcpgym_clients.failures import UsageProblem
from mcpgym_clients.files import require_place
from mcpgym_rl.files import replace_whole

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_PREFIX = "mcpgym-"
_OURS = ("mcpgym", "mcpgym_clients", "mcpgym_environments", "mcpgym_rl")


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What was typed. ``name`` is the package's, for verifiers."""

    environment: str
    out: Path
    split: str | None = None
    seed: int = 0
    config: Sequence[str] = ()
    server: str | None = None
    name: str | None = None
    force: bool = False


def export_verifiers(options: ExportOptions) -> None:
    """Write an installable package for verifiers and prime-rl, and say what is in it.

    Raises:
        UsageProblem: the folder is there already, or the name will not do.
        ConfigurationError: there is no such environment or configuration.
    """
    if options.out.exists():
        raise UsageProblem(f"--out {options.out} is there already; name a folder that is not")
    facts = _facts(options)
    package = _package_name(options, facts)
    files = verifiers_files(facts, package, _serve(options, facts))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{options.out.name}.", dir=options.out.parent))
    try:
        for name, text in files.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            (temporary / name).write_text(text, "utf-8", newline="\n")
        temporary.chmod(0o755)
        temporary.rename(options.out)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    out().print(
        f"[green]✓[/green] {escaped(str(options.out))}: the package [cyan]{package}[/cyan], for verifiers and prime-rl",
        soft_wrap=True,
    )
    _say(
        facts,
        f"export MCPGYM_CONTROL_SECRET=…; {_serve(options, facts)}",
        f"pip install {options.out}",
        f"vf-eval {package} -n 20 -c 16 -m MODEL --client.base-url URL --no-push --no-rich",
        f"uv run rl @ {options.out}/rl.toml",
    )


def export_inspect(options: ExportOptions) -> None:
    """Write a task file for Inspect AI, and say what is in it.

    Raises:
        UsageProblem: the file is there already, or is no Python file.
        ConfigurationError: there is no such environment or configuration.
    """
    if options.out.suffix != ".py":
        raise UsageProblem(f"--out {options.out}: Inspect reads Python files; write {options.out.with_suffix('.py')}")
    require_place("--out", options.out, "task.py")
    if options.out.exists() and not options.force:
        raise UsageProblem(f"--out {options.out} is there already; replace it with --force, or name another file")
    facts = _facts(options)
    replace_whole(options.out, inspect_file(facts).encode())
    out().print(f"[green]✓[/green] {escaped(str(options.out))}: a task for Inspect AI", soft_wrap=True)
    _say(
        facts,
        f"export MCPGYM_CONTROL_SECRET=…; {_serve(options, facts)}",
        "pip install inspect-ai mcp openai",
        f"inspect eval {options.out} --model openai/gpt-4o-mini --limit 20",
    )


def _facts(options: ExportOptions) -> Facts:
    facts = facts_of(options.environment, options.config, options.split, options.seed, options.server)
    if facts.config:
        warn("its --config is sent with every episode; a server that was started with the same needs none of it")
    return facts


def _serve(options: ExportOptions, facts: Facts) -> str:
    brought = [] if facts.config else list(options.config)  # a server of one's own is configured where it is served
    return serve_command(options.environment, brought, facts.server)


def _say(facts: Facts, *lines: str) -> None:
    splits = ", ".join(f"{name} {count:,}" for name, count in facts.splits.items())
    out().print(f"{escaped(facts.environment)} {facts.version}: {splits}; schema hash {facts.schema_hash}\n")
    for line in lines:
        out().print(f"  {escaped(line)}", soft_wrap=True, highlight=False)


def _package_name(options: ExportOptions, facts: Facts) -> str:
    if options.name is None:
        made = re.sub(r"[^a-z0-9]+", "-", facts.environment.lower()).strip("-")
        package = _PREFIX + (made or "environment")
        return f"{package}-environment" if package.replace("-", "_") in _OURS else package
    module = options.name.replace("-", "_")
    if not _NAME.fullmatch(options.name):
        raise UsageProblem(f"--name {options.name}: small letters, digits and single hyphens, as {_PREFIX}my-game")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module in ("verifiers", *_OURS):
        raise UsageProblem(f"--name {options.name}: a module {module} is there already; choose another name")
    return options.name
