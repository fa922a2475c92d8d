"""Writes docs/bundled.md from the environments: ``python -m tests.bundled_docs``. A test keeps it current."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mcpgym import Environment, load_environment
from mcpgym.asking import settle

PAGE = Path(__file__).parents[1] / "docs" / "bundled.md"
NAMES = ("tic-tac-toe", "reverse-text", "double-check", "wiki-search", "python-sandbox")
HEAD = """\
# The bundled environments

This page is generated from the environments (`python -m tests.bundled_docs`); `mcpgym list NAME` shows the same.
"""


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines) + "\n"


def section(environment: Environment[Any, Any, Any]) -> str:
    """What a reader wants to know of one environment."""
    schema = environment.config_class.model_json_schema()["properties"]
    splits = ", ".join(f"`{split}` ({len(environment.tasks(split)):,} tasks)" for split in environment.splits)
    policies = ", ".join(f"`{name}`" for name in sorted(environment.reference_policies()))
    parts = [
        f"## {environment.name}\n",
        f"{environment.description} Version {environment.version}; splits {splits}; reference policies {policies}"
        + (f"; at most {environment.max_turns} turns.\n" if environment.max_turns else ".\n"),
    ]
    for tool in environment.tools.values():
        arguments = tool.parser.schema["properties"]
        rows = [[f"`{name}`", str(item["type"]), str(item["description"])] for name, item in arguments.items()]
        parts += [f"**Tool `{tool.name}`**: {tool.description}\n", table(["argument", "type", "what it is"], rows)]
    rewards = [
        [f"`{name}`", f"{item.weight:g}", f"{item.low:g} to {item.high:g}", item.description]
        for name, item in environment.rewards.items()
    ]
    parts += ["**Rewards**\n", table(["name", "weight", "range", "what it pays for"], rewards)]
    fields = [
        [f"`{name}`", f"`{field.get_default()}`", " ".join(str(schema[name]["description"]).split())]
        for name, field in environment.config_class.model_fields.items()
    ]
    parts += ["**Configuration** (`--config name=value`)\n", table(["name", "default", "what it is"], fields)]
    first = environment.tasks(environment.splits[-1])[0]
    state: Any = asyncio.run(settle(environment.reset(first, 0)))
    prompt = "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in environment.messages(first, state))
    parts += [f"**The prompt of `{first.id}`**\n", f"```text\n{prompt}\n```\n"]
    return "\n".join(parts)


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(section(load_environment(name)) for name in NAMES)])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
