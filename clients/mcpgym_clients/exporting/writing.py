"""The files of an export: templates with an environment's facts put in."""

from __future__ import annotations

import ast
import builtins
import json
import keyword
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from mcpgym import messages
from mcpgym_clients.exporting.facts import Facts
from mcpgym_rl import parse

TEMPLATES = Path(__file__).parent / "templates"
MODULE = "exported_env"
_ALSO = (messages, parse)
LONGEST_LINE = 120


def verifiers_files(facts: Facts, package: str, serve: str) -> dict[str, str]:
    """The package for verifiers: texts by path. ``serve`` is the command that starts the server."""
    module = package.replace("-", "_")
    words = _words(facts, package, serve)
    top = TEMPLATES / "verifiers"
    files: dict[str, str] = {}
    for path in sorted(top.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(top).as_posix().replace(MODULE, module)
            text = path.read_text("utf-8")
            if name.endswith(".toml"):
                text = _filled(text, {word: _quoted(value) for word, value in words.items()})
            filled = _filled(text, words) if name.endswith(".md") else text
            files[name] = filled.replace(MODULE, module)
    files[f"{module}/__init__.py"] = files[f"{module}/__init__.py"].replace("ENVIRONMENT", _harmless(facts.environment))
    files[f"{module}/control.py"] = (TEMPLATES / "control.py").read_text("utf-8")
    for source in _ALSO:  # the parser and the messages that mcpgym's own loop has, so that turns are read alike
        text = Path(source.__file__ or "").read_text("utf-8")
        files[f"{module}/{source.__name__.rpartition('.')[2]}.py"] = text.replace("from mcpgym.", f"from {module}.")
    files[f"{module}/environment.json"] = _json(facts) + "\n"
    return files


def inspect_file(facts: Facts) -> str:
    """The task file for Inspect: one text, with all that it needs."""
    task = (TEMPLATES / "inspect" / "task.py").read_text("utf-8")
    control = (TEMPLATES / "control.py").read_text("utf-8")
    imports, ((docstring, body), (_, control_body)) = _joined(task, control)
    body = body.replace("def exported(", f"def {_task_name(facts.environment, task + control)}(")
    text = docstring.replace("ENVIRONMENT", _harmless(facts.environment))
    text += f'\n\n{imports}\n\nEXPORTED: dict[str, Any] = json.loads(\n    r"""{_json(facts)}"""\n)\n'
    return f"{text}\n{control_body}\n\n\n{body}\n"


def _task_name(environment: str, text: str) -> str:
    """The task's name: the environment's, where Python can have it and ``text`` uses it for nothing else."""
    name = re.sub(r"\W+", "_", environment).strip("_") or "environment"
    taken = {*re.findall(r"\w+", text), *keyword.kwlist, *dir(builtins)}
    return name if name.isidentifier() and name not in taken else f"mcpgym_{name}"


def _harmless(name: str) -> str:
    """A name as it may stand in a docstring: what it names may be somebody's command."""
    return re.sub(r"[\\\"\s]+", " ", name)


def _joined(*modules: str) -> tuple[str, list[tuple[str, str]]]:
    """The imports of several modules as one block, and of each its docstring and what follows its imports."""
    found: dict[str, set[str]] = {}
    parts = []
    for text in modules:
        tree = ast.parse(text)
        heads = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in heads:
            module = node.module if isinstance(node, ast.ImportFrom) and node.module else ""
            for name in node.names:
                found.setdefault(module or name.name, set()).update({name.name} if module else set())
        lines = text.splitlines()
        first, last = heads[0].lineno - 1, max(node.end_lineno or 0 for node in heads)
        parts.append(("\n".join(lines[:first]).strip(), "\n".join(lines[last:]).strip()))
    found.pop("control", None)
    future = found.pop("__future__")
    blocks = [f"from __future__ import {', '.join(sorted(future))}"]
    for ours in (True, False):
        chosen = {name for name in found if (name.split(".")[0] in sys.stdlib_module_names) is ours}
        whole = [f"import {name}" for name in sorted(chosen) if not found[name]]
        blocks.append("\n".join([*whole, *(_from(name, found[name]) for name in sorted(chosen) if found[name])]))
    return "\n\n".join(blocks), parts


def _from(module: str, names: set[str]) -> str:
    line = f"from {module} import {', '.join(sorted(names))}"
    if len(line) > LONGEST_LINE:
        line = "\n".join([f"from {module} import (", *(f"    {name}," for name in sorted(names)), ")"])
    return line


def _json(facts: Facts) -> str:
    return json.dumps(facts.as_json(), indent=2, ensure_ascii=True)


def _words(facts: Facts, package: str, serve: str) -> Mapping[str, str]:
    """What stands in a template, and what takes its place; in this order."""
    splits = list(facts.splits)
    training = "train" if "train" in splits else splits[0]
    return {
        "ENVIRONMENT": facts.environment,
        "PACKAGE": package,
        "VERSION": facts.version,
        "0.0.0": facts.version if re.fullmatch(r"\d+(\.\d+)*", facts.version) else "0",
        "SPLITS": "\n".join(f"| `{name}` | {count:,} |" for name, count in facts.splits.items()),
        "REWARDS": "\n".join(f"| `{name}` | {weight:g} |" for name, weight in facts.rewards.items()),
        "TOOLS": ", ".join(f"`{name}`" for name in facts.tools) or "none",
        "HASH": facts.schema_hash,
        "SERVE": serve,
        "ADDRESS": facts.server,
        "TRAINING": training,
        "TESTING": facts.split
        if facts.split != training
        else next((one for one in splits if one != training), training),
        "SPLIT": facts.split,
        "SEED": str(facts.seed),
        "TURNS": f"{facts.max_turns} turns",
        "DESCRIPTION": facts.description,
    }


def _quoted(text: str) -> str:
    """``text`` as it stands between the quotes of a TOML string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _filled(text: str, words: Mapping[str, str]) -> str:
    """Every word in one pass, so that nothing which is put in is looked at again."""
    if not words:
        return text
    pattern = re.compile("|".join(rf"\b{re.escape(word)}\b" for word in words))
    return pattern.sub(lambda found: words[found[0]], text)


def serve_command(name: str, options: list[str], server: str) -> str:
    """The line that starts a server for the environment as it was exported."""
    port = re.search(r":(\d+)(?:/|$)", server)
    words = ["mcpgym", "serve", name, "--episode-urls-only"]
    words += ["--port", port[1]] if port is not None and not server.startswith("unix:") else []
    return shlex.join([*words, *[word for option in options for word in ("--config", option)]])
